// SPDX-License-Identifier: BSD-3-Clause
#include "formats/pte/rewrite/external_data.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/base/hashes.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/file_budget.h"
#include "core/io/read_pieces.h"
#include "core/layout/same_bytes.h"
#include "etstream/program.h"
#include "formats/pte/backends/backend_payload.h"
#include "formats/pte/rewrite/payloads.h"
#include "formats/tensor/dimensions.h"

namespace etstream {

std::uint32_t ExternalData::add_buffer(ByteSource data) {
  data_.buffers.push_back({std::move(data)});
  return static_cast<std::uint32_t>(data_.buffers.size() - 1);
}

bool ExternalData::add(const std::string& key, std::uint32_t buffer,
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

std::optional<std::uint32_t> ExternalData::find(const std::string& key) const {
  const auto there = entries_.find(key);
  if (there == entries_.end()) return std::nullopt;
  return data_.entries[there->second].buffer;
}

std::string key_suffix(const TensorLayout& layout) {
  return text(":{}{}", name_of(layout.scalar_type), list_text(layout.sizes));
}

Result<std::string> sha256_of(const ByteSource& source) {
  Sha256 hasher;
  ETSTREAM_TRY(read_pieces(source, [&](std::span<const std::byte> bytes) { hasher.update(bytes); }));
  return hasher.hex();
}

void make_external(EditableProgram& editable, const ExternalUses& uses) {
  std::vector<ProgramTensor> gone;
  for (const ExternalUses::Tensor& use : uses.tensors) {
    ProgramTensor& tensor = editable.tensors[use.index];
    gone.push_back(tensor);
    tensor.name = use.key;
    tensor.buffer = use.buffer;
    tensor.is_external = true;
    editable.changed_tensors.insert(use.index);
  }
  if (editable.constants && editable.constants->pieces) {
    if (std::ranges::any_of(editable.tensors, &ProgramTensor::is_constant)) {
      remove_pieces(editable, *editable.constants, gone, &ProgramTensor::is_constant);
    } else {
      std::vector<ByteSource>& pieces = *editable.constants->pieces;
      pieces.resize(std::min<std::size_t>(pieces.size(), 1));
    }
  }
  remove_named_data(editable, uses.named_data);
}

namespace {

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
      if (!tensor.is_constant()) continue;
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
    if (const auto* key = given_key(std::to_string(tensor.buffer))) return *key;
    if (options_.keys.empty() && !tensor.name.empty()) return tensor.name;
    std::string& hash = hashes_[tensor.buffer];
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
    const std::uint32_t constant = editable_.tensors[index].buffer;
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
  tensor.buffer = number->second;
  tensor.is_external = false;
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
    if (editable.tensors[i].is_external && !editable.tensors[i].is_planned) {
      ETSTREAM_TRY(move_tensor_in(editable, entries, i, numbers));
    }
  }
  ETSTREAM_TRY(move_named_data_in(editable, entries));
  return require_use(editable, files, entries);
}

}  // namespace etstream
