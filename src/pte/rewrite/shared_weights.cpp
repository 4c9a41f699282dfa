// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/shared_weights.h"

#include <map>
#include <set>
#include <utility>

#include "base/text.h"
#include "base/try.h"
#include "layout/same_bytes.h"
#include "pte/rewrite/constant_segment.h"
#include "pte/rewrite/external_data.h"
#include "pte/rewrite/program_planner.h"
#include "pte/rewrite/weight_uses.h"
#include "tensor/dimensions.h"

namespace etstream {
namespace {

/// Equal bytes, and who has them.
struct Group {
  struct Use {
    std::uint32_t program = 0;
    const WeightUses* weight = nullptr;
    std::optional<KeptBecause> kept;
  };
  ByteSource data;
  std::vector<Use> uses;
  std::vector<std::string> keys;                      // of them in the tensor data
  std::map<std::string, std::string> keys_by_tensor;  // by a tensor's name and layout
};

class WeightSharer {
 public:
  explicit WeightSharer(const SharedWeights& description)
      : description_(description), external_uses_(description.programs.size()) {}

  Result<SharedWeightsPlan> run() {
    for (const ProgramFile* program : description_.programs) {
      ETSTREAM_ASSIGN(ProgramWeights weights, read_weight_uses(*program));
      programs_.push_back(std::move(weights));
    }
    ETSTREAM_TRY(find_groups());
    find_owners_of_keys();
    for (Group& group : groups_) decide(group);
    ETSTREAM_TRY(name_groups());
    return make_plan();
  }

 private:
  Result<void> find_groups() {
    std::vector<ByteSource> sources;
    std::vector<Group::Use> uses;
    for (std::uint32_t i = 0; i < programs_.size(); ++i) {
      for (const WeightUses& weight : programs_[i].weights) {
        sources.push_back(weight.data);
        uses.push_back({i, &weight, weight.kept});
      }
    }
    ETSTREAM_ASSIGN(const auto first, first_equal(sources));
    std::vector<std::size_t> places(sources.size());  // in groups_
    for (std::size_t i = 0; i < sources.size(); ++i) {
      if (first[i] == i) {
        places[i] = groups_.size();
        groups_.emplace_back().data = sources[i];
      }
      places[i] = places[first[i]];
      groups_[places[i]].uses.push_back(uses[i]);
    }
    return {};
  }

  /// ExecuTorch gives a delegate what tensor data has under a key, before what the program has itself.
  void find_owners_of_keys() {
    for (const ProgramWeights& program : programs_)
      barred_.insert(program.asked_for.begin(), program.asked_for.end());
    for (const Group& group : groups_) {
      for (const Group::Use& use : group.uses) {
        for (const std::string& key : use.weight->keys) {
          if (owners_.try_emplace(key, &group).first->second != &group) barred_.insert(key);
        }
      }
    }
  }

  /// Which of the uses stay in their programs.
  void decide(Group& group) const {
    const auto keep = [&](KeptBecause reason, auto applies) {
      for (Group::Use& use : group.uses) {
        if (!use.kept && applies(use)) use.kept = reason;
      }
    };
    const auto any = [](const Group::Use&) { return true; };
    if (count_programs(group) < 2) return keep(KeptBecause::kInOneProgram, any);
    if (group.data.size() < description_.least_size) return keep(KeptBecause::kSmall, any);
    keep(KeptBecause::kOtherDataUnderKey, [&](const Group::Use& use) {
      for (const std::string& key : use.weight->keys) {
        if (barred_.contains(key)) return true;
      }
      return false;
    });
    if (count_programs(group) < 2) keep(KeptBecause::kOtherDataUnderKey, any);
  }

  /// Those that can do without it.
  static std::size_t count_programs(const Group& group) {
    std::set<std::uint32_t> programs;
    for (const Group::Use& use : group.uses) {
      if (!use.kept) programs.insert(use.program);
    }
    return programs.size();
  }

  /// What delegates ask for can't be renamed, and so comes first.
  Result<void> name_groups() {
    std::vector<std::pair<Group*, std::uint32_t>> shared;  // with their buffers
    for (Group& group : groups_) {
      if (count_programs(group) == 0) continue;
      const std::uint32_t buffer = external_.add_buffer(group.data);
      shared.emplace_back(&group, buffer);
      for (const Group::Use& use : group.uses) {
        if (use.kept) continue;
        for (const std::string& key : use.weight->keys) {
          external_uses_[use.program].named_data.insert(key);
          if (!external_.find(key)) group.keys.push_back(key);
          if (!external_.add(key, buffer, std::nullopt)) return clash(key);
        }
      }
    }
    for (const auto& [group, buffer] : shared) {
      for (const Group::Use& use : group->uses) {
        if (use.kept) continue;
        for (const WeightUses::Tensor& tensor : use.weight->tensors) {
          ETSTREAM_ASSIGN(std::string key, name_tensor(*group, buffer, tensor));
          if (!tensor.name.empty() && key != tensor.name) renamed_.push_back({use.program, tensor.name, key});
          external_uses_[use.program].tensors.push_back({tensor.index, std::move(key), buffer});
        }
      }
    }
    return {};
  }

  static Error clash(const std::string& key) {
    return make_error(ErrorCode::kInvalidArgument, "key {} would be that of two tensors with other data",
                      quote(key));
  }

  /// The tensor's key: its name, or another one of the data, or one made from it.
  Result<std::string> name_tensor(Group& group, std::uint32_t buffer, const WeightUses::Tensor& tensor) {
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
    if (add(group, buffer, key, tensor.layout)) return key;
    key = name + suffix;
    std::uint64_t& number = numbers_[name];
    while (!add(group, buffer, key, tensor.layout)) key = text("{}:{}", name, ++number + 1);
    return key;
  }

  bool add(Group& group, std::uint32_t buffer, const std::string& key, const TensorLayout& layout) {
    const auto owner = owners_.find(key);
    if (barred_.contains(key) || (owner != owners_.end() && owner->second != &group)) return false;
    const bool is_new = !external_.find(key);
    if (!external_.add(key, buffer, layout)) return false;
    if (is_new) group.keys.push_back(key);
    return true;
  }

  Result<SharedWeightsPlan> make_plan() {
    SharedWeightsPlan out;
    for (std::size_t i = 0; i < programs_.size(); ++i) {
      ETSTREAM_ASSIGN(FilePlan planned, plan_program(*description_.programs[i], external_uses_[i]));
      out.programs.push_back(std::move(planned));
    }
    if (!external_.data().entries.empty()) {
      out.tensor_data = external_.data();
      ETSTREAM_ASSIGN(out.weights, plan(out.tensor_data));
    }
    for (Group& group : groups_) {
      ProgramData data{group.data.size(), {}, std::move(group.keys)};
      for (const Group::Use& use : group.uses) {
        data.uses.push_back({use.program, use.weight->label, use.kept});
      }
      out.data.push_back(std::move(data));
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
  std::vector<ProgramWeights> programs_;
  std::vector<Group> groups_;                   // in the order in which programs have them
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
