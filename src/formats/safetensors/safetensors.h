// SPDX-License-Identifier: BSD-3-Clause
//
// safetensors files (huggingface/safetensors): u64 length of a JSON header, the header, then
// the tensors' bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/result.h"
#include "etstream/tensor.h"

namespace etstream {

inline constexpr std::uint64_t kSafetensorsLengthSize = 8;
inline constexpr std::uint64_t kLongestSafetensorsHeader =
    100'000'000;  // as the reference implementation has it

struct SafetensorsFile {
  std::vector<CheckpointTensor> tensors;  // contiguous, in the order of their bytes, which stay in the file
  bool has_metadata = false;              // whether __metadata__ has anything
};

/// Opens a safetensors file. A tensor of a type that ExecuTorch lacks, or with a dimension over 2^31 - 1, has
/// a shape and no layout. Unknown members of a tensor's object are skipped. Memory grows with the header,
/// which is at most kLongestSafetensorsHeader bytes. Errors: kCorrupt, also for tensors that overlap, leave
/// gaps, or are not as long as their shape says.
[[nodiscard]] Result<SafetensorsFile> open_safetensors(const ByteSource& file);

struct SafetensorsDtype {
  std::string_view name;  // "BF16"
  std::size_t rank = 0;   // by which the reference implementation sorts the tensors of a file, highest first
};

/// A tensor that the format can hold, and its type there.
struct StoredTensor {
  const CheckpointTensor* tensor = nullptr;
  SafetensorsDtype dtype;
};

/// The differences between the headers of writers.
struct SafetensorsStyle {
  std::string_view begin;  // how the JSON object begins
  /// Spells a name in double quotes; returns nothing if it is not UTF-8.
  std::optional<std::string> (*spell)(std::string_view name);
  std::string_view tensors;     // what messages call them
  std::string_view file;        // and the file
  std::uint32_t alignment = 1;  // of where tensors begin, a power of two
};

/// Returns the header of a file of `tensors`, in this order, with its length before it, filled up with spaces
/// to a multiple of the alignment and of 8. Errors: kUnsupported for a name that is not UTF-8; kTooLarge over
/// kLongestSafetensorsHeader.
[[nodiscard]] Result<std::vector<std::byte>> safetensors_header(const std::vector<StoredTensor>& tensors,
                                                                const SafetensorsStyle& style);

/// Names the type of a tensor without a layout, for messages that ExecuTorch has no such tensors: "Q4_0", or
/// "U8 [0, 2147483648]" if ExecuTorch has the type, but not in this size.
[[nodiscard]] std::string type_without_layout(const CheckpointTensor& tensor);

/// Returns nothing for a type that safetensors does not have.
[[nodiscard]] std::optional<SafetensorsDtype> safetensors_dtype(ScalarType type) noexcept;
/// Returns nothing if the format has no type of this name, or tensors of that shape have another size in it.
[[nodiscard]] std::optional<SafetensorsDtype> safetensors_dtype(std::string_view type,
                                                                std::span<const std::uint64_t> shape,
                                                                std::uint64_t size);

/// Returns the type of a tensor that the format can hold. Error: kUnsupported for a tensor without a layout
/// whose type and shape are not those of a safetensors file, for a type that safetensors lacks, and for
/// elements in another order than that of the dimensions.
[[nodiscard]] Result<SafetensorsDtype> safetensors_dtype(const CheckpointTensor& tensor);

}  // namespace etstream
