// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/program_plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/base/text.h"
#include "core/base/try.h"
#include "core/layout/same_bytes.h"
#include "etstream/program.h"
#include "formats/pte/backends/backend_payload.h"
#include "formats/pte/rewrite/external_data.h"
#include "formats/pte/rewrite/payloads.h"
#include "formats/pte/rewrite/program_plan.h"
#include "formats/tensor/dimensions.h"

namespace etstream {
namespace {

/// A constant of a program, or a segment, with all its users.
struct Weight {
  struct Tensor {
    std::size_t index = 0;  // in EditableProgram::tensors
    std::string name;       // fully qualified, or empty
    TensorLayout layout;
  };

  std::uint32_t program = 0;  // its index
  ByteSource data;
  std::string label;                               // for people: "constant 'linear.weight'"
  std::optional<KeptBecause> kept = std::nullopt;  // where it stays in the program
  std::vector<Tensor> tensors = {};                // of a constant
  std::vector<std::string> keys = {};              // of named data
};

/// Adds a program's weights to a list: constants first, then named data, then the data that can't leave the
/// program.
class WeightReader {
 public:
  WeightReader(EditableProgram editable, std::uint32_t program, std::vector<Weight>& out)
      : editable_(std::move(editable)), program_(program), out_(out) {}

  Result<void> run() {
    ETSTREAM_TRY(read_constants());
    read_named_data();
    read_delegates();
    return read_initial_states();
  }

 private:
  Result<void> read_constants() {
    std::map<std::uint32_t, std::size_t> places;  // in out_, by number
    for (std::size_t i = 0; i < editable_.tensors.size(); ++i) {
      const ProgramTensor& tensor = editable_.tensors[i];
      if (!tensor.is_constant()) continue;
      ETSTREAM_TRY(split_constants(editable_));
      ETSTREAM_ASSIGN(ByteSource data, piece_of(editable_, tensor));
      const auto [place, is_new] = places.try_emplace(tensor.buffer, out_.size());
      if (is_new) out_.push_back({program_, std::move(data), "constant " + name_of(tensor)});
      Weight& weight = out_[place->second];
      ETSTREAM_ASSIGN(TensorLayout layout, layout_of(editable_, tensor));
      if (!fits(layout, weight.data)) weight.kept = KeptBecause::kLayout;
      weight.tensors.push_back({i, tensor.name, std::move(layout)});
    }
    return {};
  }

  void read_named_data() {
    std::map<std::uint32_t, std::size_t> places;  // in out_, by segment
    for (const EditableProgram::NamedData& named : editable_.named_data) {
      // Metadata is about the program itself.
      if (named.key.starts_with(kMetadataPrefix)) continue;
      const auto [place, is_new] = places.try_emplace(named.segment, out_.size());
      if (is_new) {
        out_.push_back(
            {program_, editable_.segments[named.segment].source, "named data " + quote(named.key)});
      }
      out_[place->second].keys.push_back(named.key);
    }
  }

  void read_delegates() {
    std::set<std::pair<bool, std::uint32_t>> seen;
    for (const DelegateReference& delegate : editable_.delegates) {
      if (!seen.insert({delegate.in_segment, delegate.index}).second) continue;
      out_.push_back({program_, data_of(editable_, delegate), "delegate " + printable(delegate.backend),
                      KeptBecause::kDelegate});
    }
  }

  Result<void> read_initial_states() {
    if (editable_.mutable_data.empty()) return {};
    ETSTREAM_TRY(split_mutable_data(editable_));
    // ExecuTorch 1.5.1 reads only the first segment of mutable data, and writes no other.
    const std::vector<ByteSource>& pieces = *editable_.mutable_data.front().pieces;
    std::set<std::uint32_t> seen;
    for (const ProgramTensor& tensor : editable_.tensors) {
      if (!tensor.has_initial_state() || tensor.buffer >= pieces.size() || !seen.insert(tensor.buffer).second)
        continue;
      out_.push_back(
          {program_, pieces[tensor.buffer], "initial state " + name_of(tensor), KeptBecause::kInitialState});
    }
    return {};
  }

  static std::string name_of(const ProgramTensor& tensor) {
    return tensor.name.empty() ? std::to_string(tensor.buffer) : quote(tensor.name);
  }

  static bool fits(const TensorLayout& layout, const ByteSource& data) {
    const auto bytes = byte_size(layout.scalar_type, layout.sizes);
    return bytes && *bytes == data.size() && is_permutation(layout.dim_order, layout.sizes.size());
  }

  EditableProgram editable_;
  const std::uint32_t program_;
  std::vector<Weight>& out_;
};

/// Equal bytes, and the weights that have them.
struct Group {
  ByteSource data;
  std::vector<Weight*> weights;
  std::optional<std::uint32_t> buffer;                // in the tensor data, where programs share it
  std::vector<std::string> keys;                      // of it there
  std::map<std::string, std::string> keys_by_tensor;  // by a tensor's name and layout
};

class WeightSharer {
 public:
  explicit WeightSharer(const SharedWeights& description)
      : description_(description), external_uses_(description.programs.size()) {}

  Result<SharedWeightsPlan> run() {
    for (std::uint32_t i = 0; i < description_.programs.size(); ++i) ETSTREAM_TRY(read_program(i));
    ETSTREAM_TRY(find_groups());
    find_owners_of_keys();
    for (Group& group : groups_) decide(group);
    ETSTREAM_TRY(name_groups());
    return make_plan();
  }

 private:
  Result<void> read_program(std::uint32_t number) {
    const ProgramFile& program = *description_.programs[number];
    ETSTREAM_ASSIGN(EditableProgram editable, read_editable_program(program));
    ETSTREAM_TRY(WeightReader(std::move(editable), number, weights_).run());
    ETSTREAM_ASSIGN(const DataRequests requests, read_data_requests(program.model()));
    // Data that the program lacks comes from its own files, so its keys are barred.
    for (std::string& key : external_keys(requests)) barred_.insert(std::move(key));
    return {};
  }

  Result<void> find_groups() {
    std::vector<ByteSource> sources;
    for (const Weight& weight : weights_) sources.push_back(weight.data);
    ETSTREAM_ASSIGN(const auto first, first_equal(sources));
    std::vector<std::size_t> places(sources.size());  // in groups_
    for (std::size_t i = 0; i < sources.size(); ++i) {
      if (first[i] == i) {
        places[i] = groups_.size();
        groups_.emplace_back().data = sources[i];
      }
      places[i] = places[first[i]];
      groups_[places[i]].weights.push_back(&weights_[i]);
    }
    return {};
  }

  /// Finds the data of each key. ExecuTorch gives a delegate the tensor data under a key before the program's
  /// own.
  void find_owners_of_keys() {
    for (const Group& group : groups_) {
      for (const Weight* weight : group.weights) {
        for (const std::string& key : weight->keys) {
          if (owners_.try_emplace(key, &group).first->second != &group) barred_.insert(key);
        }
      }
    }
  }

  /// Decides which of the weights stay in their programs.
  void decide(Group& group) const {
    const auto keep_all = [&](KeptBecause reason) {
      for (Weight* weight : group.weights) {
        if (!weight->kept) weight->kept = reason;
      }
    };
    if (count_programs(group) < 2) return keep_all(KeptBecause::kInOneProgram);
    if (group.data.size() < description_.least_size) return keep_all(KeptBecause::kSmall);
    for (Weight* weight : group.weights) {
      const bool clashes =
          std::ranges::any_of(weight->keys, [&](const auto& key) { return barred_.contains(key); });
      if (!weight->kept && clashes) weight->kept = KeptBecause::kOtherDataUnderKey;
    }
    if (count_programs(group) < 2) keep_all(KeptBecause::kOtherDataUnderKey);
  }

  /// Returns the number of programs that can do without it.
  static std::size_t count_programs(const Group& group) {
    std::set<std::uint32_t> programs;
    for (const Weight* weight : group.weights) {
      if (!weight->kept) programs.insert(weight->program);
    }
    return programs.size();
  }

  /// Names the data in groups. The keys of delegates come first, as they can't be renamed.
  Result<void> name_groups() {
    for (Group& group : groups_) {
      if (count_programs(group) == 0) continue;
      group.buffer = external_.add_buffer(group.data);
      for (const Weight* weight : group.weights) {
        if (weight->kept) continue;
        for (const std::string& key : weight->keys) {
          external_uses_[weight->program].named_data.insert(key);
          if (!external_.find(key)) group.keys.push_back(key);
          if (external_.add(key, *group.buffer, std::nullopt)) continue;
          return make_error(ErrorCode::kInvalidArgument,
                            "key {} would be that of two tensors with other data", quote(key));
        }
      }
    }
    for (Group& group : groups_) {
      for (const Weight* weight : group.weights) {
        if (weight->kept) continue;
        for (const Weight::Tensor& tensor : weight->tensors) {
          ETSTREAM_ASSIGN(std::string key, name_tensor(group, tensor));
          if (!tensor.name.empty() && key != tensor.name) {
            renamed_.push_back({weight->program, tensor.name, key});
          }
          external_uses_[weight->program].tensors.push_back({tensor.index, std::move(key), *group.buffer});
        }
      }
    }
    return {};
  }

  /// Returns the tensor's key: its name, or another key of the data, or one made from its name.
  Result<std::string> name_tensor(Group& group, const Weight::Tensor& tensor) {
    std::string name = tensor.name;
    if (name.find('\0') != std::string::npos) name.clear();  // ExecuTorch would read it up to there
    const std::string suffix = key_suffix(tensor.layout);
    std::string& key = group.keys_by_tensor[name + suffix + list_text(tensor.layout.dim_order)];
    if (!key.empty()) return key;
    if (name.empty() && !group.keys.empty()) name = group.keys.front();
    if (name.empty()) {
      ETSTREAM_ASSIGN(name, sha256_of(group.data));
    }
    key = name;
    if (add(group, key, tensor.layout)) return key;
    key = name + suffix;
    std::uint64_t& number = numbers_[name];
    while (!add(group, key, tensor.layout)) key = text("{}:{}", name, ++number + 1);
    return key;
  }

  bool add(Group& group, const std::string& key, const TensorLayout& layout) {
    const auto owner = owners_.find(key);
    if (barred_.contains(key) || (owner != owners_.end() && owner->second != &group)) return false;
    const bool is_new = !external_.find(key);
    if (!external_.add(key, *group.buffer, layout)) return false;
    if (is_new) group.keys.push_back(key);
    return true;
  }

  Result<SharedWeightsPlan> make_plan() {
    SharedWeightsPlan out;
    for (std::size_t i = 0; i < external_uses_.size(); ++i) {
      ETSTREAM_ASSIGN(FilePlan planned, plan_program(*description_.programs[i], external_uses_[i]));
      out.programs.push_back(std::move(planned));
    }
    if (!external_.data().entries.empty()) {
      out.tensor_data = external_.data();
      ETSTREAM_ASSIGN(out.weights, plan(out.tensor_data));
    }
    for (Group& group : groups_) {
      ProgramData& data = out.data.emplace_back(ProgramData{group.data.size(), {}, std::move(group.keys)});
      for (Weight* weight : group.weights) {
        data.uses.push_back({weight->program, std::move(weight->label), weight->kept});
      }
    }
    out.renamed = std::move(renamed_);
    return out;
  }

  static Result<FilePlan> plan_program(const ProgramFile& program, const ExternalUses& uses) {
    if (uses.tensors.empty() && uses.named_data.empty()) return plan_copy(program.file(), "program");
    ETSTREAM_ASSIGN(EditableProgram editable, read_editable_program(program));
    ETSTREAM_ASSIGN(const ProgramStyle observed, observe_style(editable));
    if (!uses.tensors.empty()) ETSTREAM_TRY(split_constants(editable));
    make_external(editable, uses);
    return lay_out(std::move(editable), observed, {});
  }

  const SharedWeights& description_;
  std::vector<Weight> weights_;                 // in the order in which programs have them
  std::vector<Group> groups_;                   // by the first of their weights
  std::map<std::string, const Group*> owners_;  // of the keys of named data, in all programs
  std::set<std::string> barred_;                // keys of which programs expect different data
  ExternalData external_;
  std::vector<ExternalUses> external_uses_;       // by program
  std::map<std::string, std::uint64_t> numbers_;  // of keys that are made from a name
  std::vector<RenamedKey> renamed_;
};

}  // namespace

std::string_view describe(KeptBecause reason) {
  switch (reason) {
    case KeptBecause::kInOneProgram:
      return "no other program has it";
    case KeptBecause::kSmall:
      return "it is too small to gain by it";
    case KeptBecause::kOtherDataUnderKey:
      return "its key stands for other data in another program";
    case KeptBecause::kLayout:
      return "its tensor has another size";
    case KeptBecause::kDelegate:
      return "ExecuTorch loads a delegate from its program alone";
    case KeptBecause::kInitialState:
      return "it is what a mutable tensor begins with";
  }
  return "";
}

std::uint64_t SharedWeightsPlan::size() const noexcept {
  std::uint64_t out = weights ? weights->size : 0;
  for (const FilePlan& program : programs) out += program.size;
  return out;
}

Result<SharedWeightsPlan> plan(const SharedWeights& description) {
  return without_exceptions([&]() -> Result<SharedWeightsPlan> {
    if (description.programs.size() < 2) {
      return make_error(ErrorCode::kInvalidArgument, "weights are shared by two programs or more, found {}",
                        description.programs.size());
    }
    if (description.least_size == 0) {
      return Error{ErrorCode::kInvalidArgument, "expected a least size of 1 byte or more, found 0"};
    }
    return WeightSharer(description).run();
  });
}

}  // namespace etstream
