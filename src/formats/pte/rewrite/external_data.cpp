// SPDX-License-Identifier: BSD-3-Clause
//
// Data that leaves a program for a file of tensor data, data that comes in from one, and weights that several
// programs leave to one file.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/hashes.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/file_budget.h"
#include "core/io/read_pieces.h"
#include "core/layout/same_bytes.h"
#include "etstream/program.h"
#include "etstream/program_plan.h"
#include "etstream/tensor_data.h"
#include "formats/pte/backends/backend_payload.h"
#include "formats/pte/rewrite/editable_program.h"
#include "formats/pte/rewrite/program_plan.h"
#include "formats/tensor/dimensions.h"

namespace etstream {
namespace {

/// Tensor data to which entries are added. The data of a key never changes, as all that ask for the key get
/// it.
class ExternalData {
 public:
  /// Adds a buffer and returns its number. A buffer that gets no key is not written.
  std::uint32_t add_buffer(ByteSource data) {
    data_.buffers.push_back({std::move(data)});
    return static_cast<std::uint32_t>(data_.buffers.size() - 1);
  }

  /// Adds `key` for a buffer, with the layout of the tensor that asks for it, or none for a delegate. Returns
  /// false if the key exists with another buffer or layout.
  [[nodiscard]] bool add(const std::string& key, std::uint32_t buffer,
                         const std::optional<TensorLayout>& layout) {
    const auto [there, added] = entries_.try_emplace(key, data_.entries.size());
    if (added) {
      data_.entries.push_back({key, buffer, layout});
      return true;
    }
    TensorData::Entry& entry = data_.entries[there->second];
    if (entry.buffer != buffer) return false;
    if (!entry.layout) entry.layout = layout;
    return !layout || entry.layout == layout;
  }

  /// Returns the number of the buffer that has the key.
  [[nodiscard]] std::optional<std::uint32_t> find(const std::string& key) const {
    const auto there = entries_.find(key);
    if (there == entries_.end()) return std::nullopt;
    return data_.entries[there->second].buffer;
  }

  [[nodiscard]] const TensorData& data() const noexcept { return data_; }
  [[nodiscard]] TensorData take() && { return std::move(data_); }

 private:
  TensorData data_;
  std::map<std::string, std::size_t> entries_;  // by key
};

/// Returns the ending for a key that tensors of several layouts would share: ":float32[2, 3]".
std::string key_suffix(const TensorLayout& layout) {
  return text(":{}{}", name_of(layout.scalar_type), list_text(layout.sizes));
}

/// Returns the key of data that has no name, 64 hexadecimal digits.
Result<std::string> sha256_of(const ByteSource& source) {
  Sha256 hasher;
  ETSTREAM_TRY(read_pieces(source, [&](std::span<const std::byte> bytes) { hasher.update(bytes); }));
  return hasher.hex();
}

/// The tensors and the named data whose data leaves a program.
struct ExternalUses {
  struct Tensor {
    std::size_t index = 0;  // in EditableProgram::tensors, of a constant
    std::string key;
    std::uint32_t buffer = 0;  // the key's, as ExecuTorch's emitter notes it
  };
  std::vector<Tensor> tensors;
  std::set<std::string> named_data;  // keys
};

/// Removes the data in `uses` from the program, whose constants are split if `uses` has tensors.
void make_external(EditableProgram& editable, const ExternalUses& uses) {
  std::vector<ProgramTensor> gone;
  for (const ExternalUses::Tensor& use : uses.tensors) {
    ProgramTensor& tensor = editable.tensors[use.index];
    gone.push_back(tensor);
    tensor.name = use.key;
    tensor.index = use.buffer;
    tensor.kind = TensorStorage::kExternal;
    editable.changed_tensors.insert(use.index);
  }
  if (editable.constants && editable.constants->pieces) {
    if (any_of(editable.tensors, TensorStorage::kConstant)) {
      remove_pieces(editable, *editable.constants, gone, TensorStorage::kConstant);
    } else {
      std::vector<ByteSource>& pieces = *editable.constants->pieces;
      pieces.resize(std::min<std::size_t>(pieces.size(), 1));
    }
  }
  remove_named_data(editable, uses.named_data);
}

/// Returns whether `name` begins with the SHA-256 of `source`. Reads the source only if the name can be a
/// hash.
Result<bool> begins_with_sha256(const std::string& name, const ByteSource& source) {
  constexpr std::size_t kDigits = 64;
  if (std::min(name.find_first_not_of("0123456789abcdef"), name.size()) < kDigits) return false;
  ETSTREAM_ASSIGN(const std::string hash, sha256_of(source));
  return name.starts_with(hash);
}

/// Takes a program's constants out, one tensor after another.
class ConstantMover {
 public:
  ConstantMover(EditableProgram& editable, const ConstantsOut& options)
      : editable_(editable), options_(options), budget_(editable.program.name(), editable.size) {}

  Result<TensorData> run() {
    if (editable_.constants || !editable_.inline_constants.empty()) ETSTREAM_TRY(add_tensors());
    for (const auto& [constant, key] : options_.keys) {
      if (used_keys_.contains(constant)) continue;
      return make_error(
          ErrorCode::kNotFound,
          "{}: no constant is {}, which is to have the key {}; expected the SHA-256 of a constant, or "
          "its number",
          editable_.program.name(), quote(constant), quote(key));
    }
    ETSTREAM_TRY(add_named_data());
    // ExecuTorch's Module refuses a file without keys.
    if (out_.data().entries.empty()) {
      return error_in(ErrorCode::kInvalidArgument, editable_.program.name(),
                      "has no constants and no named data to move out");
    }
    make_external(editable_, uses_);
    return std::move(out_).take();
  }

 private:
  Result<void> add_tensors() {
    ETSTREAM_TRY(split_constants(editable_));
    for (std::size_t i = 0; i < editable_.tensors.size(); ++i) {
      const ProgramTensor& tensor = editable_.tensors[i];
      if (tensor.kind != TensorStorage::kConstant) continue;
      ETSTREAM_ASSIGN(const ByteSource data, piece_of(editable_, tensor));
      ETSTREAM_ASSIGN(const TensorLayout layout, layout_of(editable_, tensor));
      ETSTREAM_ASSIGN(const std::string key, key_of(tensor, data));
      ETSTREAM_TRY(add_tensor(i, data, key, layout));
    }
    return {};
  }

  /// Returns the key that was given for a constant, or null.
  const std::string* given_key(const std::string& constant) {
    const auto found = options_.keys.find(constant);
    if (found == options_.keys.end()) return nullptr;
    used_keys_.insert(constant);
    return &found->second;
  }

  Result<std::string> key_of(const ProgramTensor& tensor, const ByteSource& data) {
    if (const auto* key = given_key(std::to_string(tensor.index))) return *key;
    if (options_.keys.empty() && !tensor.name.empty()) return tensor.name;
    std::string& hash = hashes_[tensor.index];
    if (hash.empty()) {
      ETSTREAM_ASSIGN(hash, sha256_of(data));
    }
    if (const auto* key = given_key(hash)) return *key;
    if (!tensor.name.empty()) return tensor.name;
    return hash;
  }

  /// Names the tensor by the key. If a tensor of the same data but of another layout has the key, adds the
  /// layout to the name, as ExecuTorch takes a layout from the file.
  Result<void> add_tensor(std::size_t index, const ByteSource& data, const std::string& key,
                          const TensorLayout& layout) {
    const std::uint32_t constant = editable_.tensors[index].index;
    const auto [number, is_new] = numbers_.try_emplace(constant, 0);
    if (is_new) number->second = out_.add_buffer(data);
    const std::uint32_t buffer = number->second;
    std::string name = key;
    if (!out_.add(name, buffer, layout) && out_.find(key) == buffer) name += key_suffix(layout);
    if (out_.add(name, buffer, layout)) {
      uses_.tensors.push_back({index, std::move(name), buffer});
      return {};
    }
    return error_in(ErrorCode::kInvalidArgument, editable_.program.name(),
                    "key {} would be that of two tensors with other data", quote(key));
  }

  Result<void> add_named_data() {
    std::map<std::uint32_t, std::uint32_t> buffers;  // by segment
    for (const EditableProgram::NamedData& named : editable_.named_data) {
      // Metadata is about the program itself.
      if (named.key.starts_with(kMetadataPrefix)) continue;
      const ByteSource& data = editable_.segments[named.segment].source;
      auto buffer = buffers.find(named.segment);
      if (buffer == buffers.end()) {
        ETSTREAM_ASSIGN(const std::uint32_t number, buffer_for(named.key, data));
        buffer = buffers.emplace(named.segment, number).first;
      }
      if (!out_.add(named.key, buffer->second, std::nullopt)) {
        return error_in(ErrorCode::kInvalidArgument, editable_.program.name(),
                        "key {} would be that of a tensor and of named data", quote(named.key));
      }
      uses_.named_data.insert(named.key);
    }
    return {};
  }

  /// Returns the buffer of the tensor that has the key, if the bytes are equal, or a new buffer. One weight
  /// can be a constant for operators and named data for XNNPACK, both named by their SHA-256.
  Result<std::uint32_t> buffer_for(const std::string& key, const ByteSource& data) {
    const auto there = out_.find(key);
    if (there) {
      ETSTREAM_TRY(budget_.spend(data.size()));
      ETSTREAM_ASSIGN(const bool same, same_bytes(out_.data().buffers[*there].data, data));
      if (same) return *there;
    }
    return out_.add_buffer(data);
  }

  EditableProgram& editable_;
  const ConstantsOut& options_;
  FileBudget budget_;
  ExternalData out_;
  ExternalUses uses_;
  std::set<std::string> used_keys_;                 // of options_.keys
  std::map<std::uint32_t, std::string> hashes_;     // of constants
  std::map<std::uint32_t, std::uint32_t> numbers_;  // of buffers, by constant
};

/// The data of a key in one of the files.
struct ExternalEntry {
  NamedTensorData data;
  const TensorDataFile* file = nullptr;
  bool is_taken = false;
};
using ExternalEntries = std::map<std::string, ExternalEntry>;

Result<ExternalEntries> read_entries(const std::vector<const TensorDataFile*>& files) {
  ExternalEntries out;
  for (const TensorDataFile* file : files) {
    ETSTREAM_ASSIGN(auto entries, file->entries());
    for (NamedTensorData& entry : entries) {
      std::string key = entry.key;
      const auto [there, added] = out.try_emplace(std::move(key), ExternalEntry{std::move(entry), file});
      if (added) continue;
      return error_in(ErrorCode::kInvalidArgument, file->file().name(), "key {} is there twice, or in {} too",
                      quote(there->first), there->second.data.data.name());
    }
  }
  return out;
}

/// Makes an external tensor a constant with the data that has its name; leaves it as it is if no file has
/// that data.
Result<void> move_tensor_in(EditableProgram& editable, ExternalEntries& entries, std::size_t i,
                            std::map<SourcePlace, std::uint32_t>& numbers) {
  ProgramTensor& tensor = editable.tensors[i];
  const auto entry = entries.find(tensor.name);
  if (entry == entries.end()) return {};
  entry->second.is_taken = true;
  ETSTREAM_ASSIGN(const TensorLayout layout, layout_of(editable, tensor));
  const NamedTensorData& data = entry->second.data;
  if (data.layout != layout) {
    return error_in(ErrorCode::kInvalidArgument, data.data.name(),
                    "key {}: expected {} as the program's tensor is, found {}", quote(data.key),
                    describe(layout), data.layout ? describe(*data.layout) : "data without a layout");
  }
  ETSTREAM_TRY(split_constants(editable));
  std::vector<ByteSource>& pieces = *editable.constants->pieces;
  if (pieces.empty()) pieces.emplace_back();
  // Keys may share their bytes.
  const auto [number, is_new] =
      numbers.try_emplace(data.data.place(), static_cast<std::uint32_t>(pieces.size()));
  if (is_new) pieces.push_back(data.data);
  tensor.index = number->second;
  tensor.kind = TensorStorage::kConstant;
  editable.changed_tensors.insert(i);
  ETSTREAM_ASSIGN(const bool is_hash, begins_with_sha256(tensor.name, data.data));
  if (is_hash) tensor.name.clear();
  return {};
}

/// Reads the requests of the delegates that stay.
Result<DataRequests> read_delegate_requests(const EditableProgram& editable) {
  DataRequests out;
  FileBudget budget(editable.program.name(), editable.size);
  std::set<std::pair<bool, std::uint32_t>> read;
  for (const DelegateReference& reference : editable.delegates) {
    if (!read.insert({reference.in_segment, reference.index}).second) continue;
    const ByteSource& data = data_of(editable, reference);
    ETSTREAM_TRY(budget.spend(data.size()));
    ETSTREAM_TRY(add_delegate_requests(editable.program, reference, data, out));
  }
  return out;
}

/// Returns the keys of tensors' data by which delegates of the program ask for data too.
Result<std::set<std::string>> keys_of_delegates(const DataRequests& requests,
                                                const ExternalEntries& entries) {
  std::set<std::string> out;
  std::set<std::string> unknown;
  for (const DelegateRequest& request : requests.delegates) out.insert(request.key);
  for (const auto& [key, entry] : entries) {
    if (entry.data.layout && !out.contains(key)) unknown.insert(key);
  }
  for (const ByteSource& data : requests.others) {
    if (unknown.empty()) break;
    if (data.size() > kMostSearched / unknown.size()) {
      out.insert(unknown.begin(), unknown.end());  // as far as one can tell
    } else {
      ETSTREAM_TRY(find_keys(data, unknown, out));
    }
  }
  return out;
}

/// Adds entries without a tensor, or that a delegate asks for too, as named data: first in the order in which
/// delegates ask for them, as in ExecuTorch, and then by key.
Result<void> move_named_data_in(EditableProgram& editable, ExternalEntries& entries) {
  ETSTREAM_ASSIGN(const DataRequests requests, read_delegate_requests(editable));
  ETSTREAM_ASSIGN(const auto asked_for, keys_of_delegates(requests, entries));
  std::map<SourcePlace, std::uint32_t> segments;  // by where their bytes are
  std::set<std::string_view> added;
  const auto add = [&](ExternalEntry& entry) {
    const std::string& key = entry.data.key;
    const ByteSource& data = entry.data.data;
    if (!added.insert(key).second) return;
    entry.is_taken = true;
    const auto [segment, is_new] = segments.try_emplace(data.place());
    if (is_new) segment->second = editable.add_segment(data, kNamedDataLabel);
    add_named_data(editable, key, segment->second);
  };
  for (const DelegateRequest& request : requests.delegates) {
    const auto entry = entries.find(request.key);
    if (entry != entries.end()) add(entry->second);
  }
  for (auto& [key, entry] : entries) {
    if (!entry.data.layout || asked_for.contains(key)) add(entry);
  }
  if (!added.empty()) move_metadata_to_the_end(editable);
  return {};
}

/// Checks that something of each file was taken.
Result<void> require_use(const EditableProgram& editable, const std::vector<const TensorDataFile*>& files,
                         const ExternalEntries& entries) {
  std::set<const TensorDataFile*> used;
  for (const auto& [key, entry] : entries) {
    if (entry.is_taken) used.insert(entry.file);
  }
  for (const TensorDataFile* file : files) {
    if (used.contains(file)) continue;
    ETSTREAM_ASSIGN(const auto found, file->entries());
    return error_in(ErrorCode::kInvalidArgument, file->file().name(),
                    "expected data that {} asks for, found {} of others: {}", editable.program.name(),
                    counted(found.size(), "key"), names_text(found, &NamedTensorData::key));
  }
  return {};
}

}  // namespace

Result<TensorData> move_constants_out(EditableProgram& editable, const ConstantsOut& options) {
  return ConstantMover(editable, options).run();
}

Result<void> move_constants_in(EditableProgram& editable, const std::vector<const TensorDataFile*>& files) {
  if (files.empty()) return {};
  ETSTREAM_ASSIGN(ExternalEntries entries, read_entries(files));
  std::map<SourcePlace, std::uint32_t> numbers;  // of constants, by where their bytes are
  for (std::size_t i = 0; i < editable.tensors.size(); ++i) {
    if (editable.tensors[i].kind == TensorStorage::kExternal && !editable.tensors[i].is_planned) {
      ETSTREAM_TRY(move_tensor_in(editable, entries, i, numbers));
    }
  }
  ETSTREAM_TRY(move_named_data_in(editable, entries));
  return require_use(editable, files, entries);
}

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

/// Adds the weights of a program, of which it takes a copy apart, to a list: constants first, then named
/// data, then the data that can't leave the program.
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
      if (tensor.kind != TensorStorage::kConstant) continue;
      ETSTREAM_TRY(split_constants(editable_));
      ETSTREAM_ASSIGN(ByteSource data, piece_of(editable_, tensor));
      const auto [place, is_new] = places.try_emplace(tensor.index, out_.size());
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
      if (tensor.kind != TensorStorage::kMutable || tensor.index >= pieces.size()) continue;
      if (!seen.insert(tensor.index).second) continue;
      out_.push_back(
          {program_, pieces[tensor.index], "initial state " + name_of(tensor), KeptBecause::kInitialState});
    }
    return {};
  }

  static std::string name_of(const ProgramTensor& tensor) {
    return tensor.name.empty() ? std::to_string(tensor.index) : quote(tensor.name);
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
    ETSTREAM_TRY(WeightReader(editable, number, weights_).run());
    programs_.push_back(std::move(editable));
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
      ETSTREAM_ASSIGN(out.programs.emplace_back(), plan_program(std::move(programs_[i]), external_uses_[i]));
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

  static Result<FilePlan> plan_program(EditableProgram editable, const ExternalUses& uses) {
    if (uses.tensors.empty() && uses.named_data.empty()) {
      return plan_copy(editable.program.file(), "program");
    }
    ETSTREAM_ASSIGN(const ProgramStyle observed, observe_style(editable));
    if (!uses.tensors.empty()) ETSTREAM_TRY(split_constants(editable));
    make_external(editable, uses);
    return lay_out(std::move(editable), observed, {});
  }

  const SharedWeights& description_;
  std::vector<EditableProgram> programs_;
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
  // The words in the order of KeptBecause.
  static constexpr std::string_view kWords[] = {"no other program has it",
                                                "it is too small to gain by it",
                                                "its key stands for other data in another program",
                                                "its tensor has another size",
                                                "ExecuTorch loads a delegate from its program alone",
                                                "it is what a mutable tensor begins with"};
  return kWords[static_cast<std::size_t>(reason)];
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
