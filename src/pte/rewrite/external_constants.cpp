// SPDX-License-Identifier: BSD-3-Clause
#include "pte/rewrite/external_constants.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/sha256.h"
#include "base/text.h"
#include "base/try.h"
#include "etstream/tensor_layout.h"
#include "io/read_pieces.h"
#include "pte/rewrite/constant_segment.h"
#include "tensor/dimensions.h"

namespace etstream {
namespace {

constexpr std::string_view kNamedData = "named data";

Result<std::string> sha256_of(const ByteSource& source) {
  Sha256 hasher;
  ETSTREAM_TRY(read_pieces(source, [&](std::span<const std::byte> bytes) { hasher.update(bytes); }));
  return hasher.hex();
}

/// Whether `name` begins with the SHA-256 of `source`, which is read only if it can.
Result<bool> begins_with_sha256(const std::string& name, const ByteSource& source) {
  constexpr std::size_t kDigits = 64;
  if (std::min(name.find_first_not_of("0123456789abcdef"), name.size()) < kDigits) return false;
  ETSTREAM_ASSIGN(const std::string hash, sha256_of(source));
  return name.starts_with(hash);
}

Result<TensorLayout> layout_of(const EditableProgram& editable, const ProgramTensor& tensor) {
  ETSTREAM_ASSIGN(const pte::Tensor table, editable.program.tensor_at(tensor.position));
  return table.layout();
}

/// What follows a key that tensors of several layouts share.
std::string key_suffix(const TensorLayout& layout) {
  return text(":{}{}", name_of(layout.scalar_type), list_text(layout.sizes));
}

/// Takes a program's constants out, one tensor after another.
class ConstantMover {
 public:
  ConstantMover(EditableProgram& editable, const ConstantsOut& options)
      : editable_(editable), options_(options) {}

  Result<TensorData> run() {
    if (editable_.constants || !editable_.inline_constants.empty()) ETSTREAM_TRY(move_tensors());
    ETSTREAM_TRY(move_named_data());
    // ExecuTorch's Module refuses a file without keys.
    if (out_.entries.empty()) {
      return make_error(ErrorCode::kInvalidArgument, "{}: has no constants and no named data to move out",
                        editable_.program.name());
    }
    return std::move(out_);
  }

 private:
  Result<void> move_tensors() {
    ETSTREAM_TRY(split_constants(editable_));
    std::vector<ByteSource>& pieces = *editable_.constants->pieces;
    for (std::size_t i = 0; i < editable_.tensors.size(); ++i) {
      ProgramTensor& tensor = editable_.tensors[i];
      if (!tensor.is_constant()) continue;
      if (tensor.buffer >= pieces.size()) {
        return editable_.program.view().corrupt(tensor.position, text("a constant below {}", pieces.size()),
                                                std::to_string(tensor.buffer));
      }
      ETSTREAM_ASSIGN(TensorLayout layout, layout_of(editable_, tensor));
      ETSTREAM_ASSIGN(const std::string key, key_of(tensor));
      ETSTREAM_TRY(add(key, tensor, std::move(layout)));
      tensor.is_external = true;
      editable_.changed_tensors.insert(i);
    }
    pieces.resize(std::min<std::size_t>(pieces.size(), 1));
    return {};
  }

  Result<std::string> key_of(const ProgramTensor& tensor) {
    const auto by_number = options_.keys.find(std::to_string(tensor.buffer));
    if (by_number != options_.keys.end()) return by_number->second;
    if (options_.keys.empty() && !tensor.name.empty()) return tensor.name;
    std::string& hash = hashes_[tensor.buffer];
    if (hash.empty()) {
      ETSTREAM_ASSIGN(hash, sha256_of((*editable_.constants->pieces)[tensor.buffer]));
    }
    const auto by_hash = options_.keys.find(hash);
    if (by_hash != options_.keys.end()) return by_hash->second;
    if (!tensor.name.empty()) return tensor.name;
    return hash;
  }

  /// Names the tensor by the key, and by the key and its layout where another tensor of the same data but of
  /// another layout has the key: ExecuTorch takes a layout from the file.
  Result<void> add(const std::string& key, ProgramTensor& tensor, TensorLayout layout) {
    const auto [number, is_new] =
        numbers_.try_emplace(tensor.buffer, static_cast<std::uint32_t>(out_.buffers.size()));
    if (is_new) out_.buffers.push_back({(*editable_.constants->pieces)[tensor.buffer]});
    // As ExecuTorch's emitter has it.
    tensor.buffer = number->second;
    for (const std::string& name : {key, key + key_suffix(layout)}) {
      tensor.name = name;
      const auto [there, added] = entries_.try_emplace(name, out_.entries.size());
      if (added) {
        out_.entries.push_back({name, number->second, std::move(layout)});
        return {};
      }
      const auto& entry = out_.entries[there->second];
      if (entry.buffer != number->second) break;
      if (entry.layout == layout) return {};
    }
    return make_error(ErrorCode::kInvalidArgument, "{}: key {} would be that of two tensors with other data",
                      editable_.program.name(), quote(key));
  }

  Result<void> move_named_data() {
    if (editable_.named_data.empty()) return {};
    std::map<std::uint32_t, std::uint32_t> buffers;  // by segment
    for (const EditableProgram::NamedData& named : editable_.named_data) {
      const auto [buffer, is_new] =
          buffers.try_emplace(named.segment, static_cast<std::uint32_t>(out_.buffers.size()));
      if (is_new) out_.buffers.push_back({editable_.segments[named.segment].source});
      if (!entries_.try_emplace(named.key, out_.entries.size()).second) {
        return make_error(ErrorCode::kInvalidArgument,
                          "{}: key {} would be that of a tensor and of named data", editable_.program.name(),
                          quote(named.key));
      }
      out_.entries.push_back({named.key, buffer->second});
    }
    std::erase_if(editable_.order, [&](std::uint32_t i) {
      return buffers.contains(i) && editable_.segments[i].label == kNamedData;
    });
    editable_.named_data.clear();
    editable_.has_same_named_data = false;
    return {};
  }

  EditableProgram& editable_;
  const ConstantsOut& options_;
  TensorData out_;
  std::map<std::uint32_t, std::string> hashes_;     // of constants
  std::map<std::uint32_t, std::uint32_t> numbers_;  // of buffers, by constant
  std::map<std::string, std::size_t> entries_;      // by key
};

using EntriesByKey = std::map<std::string, NamedTensorData>;

Result<EntriesByKey> read_entries(const std::vector<const TensorDataFile*>& files) {
  EntriesByKey out;
  for (const TensorDataFile* file : files) {
    ETSTREAM_ASSIGN(auto entries, file->entries());
    for (NamedTensorData& entry : entries) {
      std::string key = entry.key;
      const auto [there, added] = out.try_emplace(std::move(key), std::move(entry));
      if (added) continue;
      return make_error(ErrorCode::kInvalidArgument, "{}: key {} is there twice, or in {} too",
                        file->file().name(), quote(there->first), there->second.data.name());
    }
  }
  return out;
}

/// What an external tensor takes its data from, as one of the constants. None where no file has it.
Result<void> move_tensor_in(EditableProgram& editable, const EntriesByKey& entries, std::size_t i,
                            std::map<std::string, std::uint32_t>& numbers) {
  ProgramTensor& tensor = editable.tensors[i];
  const auto entry = entries.find(tensor.name);
  if (entry == entries.end()) return {};
  ETSTREAM_ASSIGN(const TensorLayout layout, layout_of(editable, tensor));
  const NamedTensorData& data = entry->second;
  if (data.layout != layout) {
    return make_error(ErrorCode::kInvalidArgument,
                      "{}: key {}: expected {} as the program's tensor is, found {}", data.data.name(),
                      quote(data.key), describe(layout),
                      data.layout ? describe(*data.layout) : "data without a layout");
  }
  ETSTREAM_TRY(split_constants(editable));
  std::vector<ByteSource>& pieces = *editable.constants->pieces;
  if (pieces.empty()) pieces.emplace_back();
  const auto where = text("{} {}", data.data.name(), data.offset);  // keys may share their bytes
  const auto [number, is_new] = numbers.try_emplace(where, static_cast<std::uint32_t>(pieces.size()));
  if (is_new) pieces.push_back(data.data);
  tensor.buffer = number->second;
  tensor.is_external = false;
  editable.changed_tensors.insert(i);
  ETSTREAM_ASSIGN(const bool is_hash, begins_with_sha256(tensor.name, data.data));
  if (is_hash) tensor.name.clear();
  return {};
}

}  // namespace

Result<TensorData> move_constants_out(EditableProgram& editable, const ConstantsOut& options) {
  return ConstantMover(editable, options).run();
}

Result<void> move_constants_in(EditableProgram& editable, const std::vector<const TensorDataFile*>& files) {
  ETSTREAM_ASSIGN(const EntriesByKey entries, read_entries(files));
  std::map<std::string, std::uint32_t> numbers;  // of constants, by where their bytes are
  for (std::size_t i = 0; i < editable.tensors.size(); ++i) {
    if (editable.tensors[i].is_external && !editable.tensors[i].is_planned) {
      ETSTREAM_TRY(move_tensor_in(editable, entries, i, numbers));
    }
  }
  std::map<std::string, std::uint32_t> segments;  // by where their bytes are
  for (const auto& [key, entry] : entries) {
    if (entry.layout) continue;
    const auto [segment, is_new] = segments.try_emplace(text("{} {}", entry.data.name(), entry.offset),
                                                        static_cast<std::uint32_t>(editable.segments.size()));
    if (is_new) {
      editable.segments.push_back({entry.data, std::string(kNamedData)});
      editable.order.push_back(segment->second);
    }
    editable.named_data.push_back({std::nullopt, key, segment->second});
    editable.has_same_named_data = false;
  }
  return {};
}

}  // namespace etstream
