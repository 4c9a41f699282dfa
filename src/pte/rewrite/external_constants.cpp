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

Result<TensorLayout> layout_of(const ProgramDraft& draft, const ProgramTensor& tensor) {
  ETSTREAM_ASSIGN(const pte::Tensor table, draft.program.tensor_at(tensor.position));
  return table.layout();
}

/// What follows a key that tensors of several layouts share.
std::string key_suffix(const TensorLayout& layout) {
  return text(":", name_of(layout.scalar_type), list_text(layout.sizes));
}

/// Takes a draft's constants out, one tensor after another.
class ConstantMover {
 public:
  ConstantMover(ProgramDraft& draft, const ConstantsOut& options) : draft_(draft), options_(options) {}

  Result<TensorData> run() {
    if (draft_.constants || !draft_.inline_constants.empty()) ETSTREAM_TRY(move_tensors());
    ETSTREAM_TRY(move_named_data());
    // ExecuTorch's Module refuses a file without keys.
    if (out_.entries.empty()) {
      return make_error(ErrorCode::kInvalidArgument, draft_.program.name(),
                        ": has no constants and no named data to move out");
    }
    return std::move(out_);
  }

 private:
  Result<void> move_tensors() {
    ETSTREAM_TRY(split_constants(draft_));
    std::vector<ByteSource>& pieces = *draft_.constants->pieces;
    for (std::size_t i = 0; i < draft_.tensors.size(); ++i) {
      ProgramTensor& tensor = draft_.tensors[i];
      if (!tensor.is_constant()) continue;
      if (tensor.buffer >= pieces.size()) {
        return draft_.program.view().corrupt(tensor.position, text("a constant below ", pieces.size()),
                                             text(tensor.buffer));
      }
      ETSTREAM_ASSIGN(TensorLayout layout, layout_of(draft_, tensor));
      ETSTREAM_ASSIGN(const std::string key, key_of(tensor));
      ETSTREAM_TRY(add(key, tensor, std::move(layout)));
      tensor.is_external = true;
      draft_.changed_tensors.insert(i);
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
      ETSTREAM_ASSIGN(hash, sha256_of((*draft_.constants->pieces)[tensor.buffer]));
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
    if (is_new) out_.buffers.push_back({(*draft_.constants->pieces)[tensor.buffer]});
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
    return make_error(ErrorCode::kInvalidArgument, draft_.program.name(), ": key ", quote(key),
                      " would be that of two tensors with other data");
  }

  Result<void> move_named_data() {
    if (draft_.named_data.empty()) return {};
    std::map<std::uint32_t, std::uint32_t> buffers;  // by segment
    for (const ProgramDraft::NamedData& named : draft_.named_data) {
      const auto [buffer, is_new] =
          buffers.try_emplace(named.segment, static_cast<std::uint32_t>(out_.buffers.size()));
      if (is_new) out_.buffers.push_back({draft_.segments[named.segment].source});
      if (!entries_.try_emplace(named.key, out_.entries.size()).second) {
        return make_error(ErrorCode::kInvalidArgument, draft_.program.name(), ": key ", quote(named.key),
                          " would be that of a tensor and of named data");
      }
      out_.entries.push_back({named.key, buffer->second});
    }
    std::erase_if(draft_.order, [&](std::uint32_t i) {
      return buffers.contains(i) && draft_.segments[i].label == kNamedData;
    });
    draft_.named_data.clear();
    draft_.has_same_named_data = false;
    return {};
  }

  ProgramDraft& draft_;
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
      return make_error(ErrorCode::kInvalidArgument, file->file().name(), ": key ", quote(there->first),
                        " is there twice, or in ", there->second.data.name(), " too");
    }
  }
  return out;
}

/// What a tensor outside takes its data from, as one of the constants. None where no file has it.
Result<void> move_tensor_in(ProgramDraft& draft, const EntriesByKey& entries, std::size_t i,
                            std::map<std::string, std::uint32_t>& numbers) {
  ProgramTensor& tensor = draft.tensors[i];
  const auto entry = entries.find(tensor.name);
  if (entry == entries.end()) return {};
  ETSTREAM_ASSIGN(const TensorLayout layout, layout_of(draft, tensor));
  const NamedTensorData& data = entry->second;
  if (data.layout != layout) {
    return make_error(ErrorCode::kInvalidArgument, data.data.name(), ": key ", quote(data.key), ": expected ",
                      describe(layout), " as the program's tensor is, found ",
                      data.layout ? describe(*data.layout) : "data without a layout");
  }
  ETSTREAM_TRY(split_constants(draft));
  std::vector<ByteSource>& pieces = *draft.constants->pieces;
  if (pieces.empty()) pieces.emplace_back();
  const auto where = text(data.data.name(), " ", data.offset);  // keys may share their bytes
  const auto [number, is_new] = numbers.try_emplace(where, static_cast<std::uint32_t>(pieces.size()));
  if (is_new) pieces.push_back(data.data);
  tensor.buffer = number->second;
  tensor.is_external = false;
  draft.changed_tensors.insert(i);
  ETSTREAM_ASSIGN(const bool is_hash, begins_with_sha256(tensor.name, data.data));
  if (is_hash) tensor.name.clear();
  return {};
}

}  // namespace

Result<TensorData> move_constants_out(ProgramDraft& draft, const ConstantsOut& options) {
  return ConstantMover(draft, options).run();
}

Result<void> move_constants_in(ProgramDraft& draft, const std::vector<const TensorDataFile*>& files) {
  ETSTREAM_ASSIGN(const EntriesByKey entries, read_entries(files));
  std::map<std::string, std::uint32_t> numbers;  // of constants, by where their bytes are
  for (std::size_t i = 0; i < draft.tensors.size(); ++i) {
    if (draft.tensors[i].is_external && !draft.tensors[i].is_planned) {
      ETSTREAM_TRY(move_tensor_in(draft, entries, i, numbers));
    }
  }
  std::map<std::string, std::uint32_t> segments;  // by where their bytes are
  for (const auto& [key, entry] : entries) {
    if (entry.layout) continue;
    const auto [segment, is_new] = segments.try_emplace(text(entry.data.name(), " ", entry.offset),
                                                        static_cast<std::uint32_t>(draft.segments.size()));
    if (is_new) {
      draft.segments.push_back({entry.data, std::string(kNamedData)});
      draft.order.push_back(segment->second);
    }
    draft.named_data.push_back({std::nullopt, key, segment->second});
    draft.has_same_named_data = false;
  }
  return {};
}

}  // namespace etstream
