// SPDX-License-Identifier: BSD-3-Clause
//
// The element types of tensors.
//
//   const etstream::ScalarType type = etstream::find_scalar_type("bfloat16").value();
//   const std::vector<std::int32_t> sizes = {1, 3, 224, 224};
//   const std::uint64_t bytes = etstream::byte_size(type, sizes).value();
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "etstream/export.h"
#include "etstream/result.h"

namespace etstream {

/// The numbers are those in ExecuTorch's files (exir/scalar_type.py of ExecuTorch 1.5.1).
enum class ScalarType : std::int8_t {
  kUInt8 = 0,
  kInt8 = 1,
  kInt16 = 2,
  kInt32 = 3,
  kInt64 = 4,
  kFloat16 = 5,
  kFloat32 = 6,
  kFloat64 = 7,
  kComplex32 = 8,
  kComplex64 = 9,
  kComplex128 = 10,
  kBool = 11,
  kQInt8 = 12,
  kQUInt8 = 13,
  kQInt32 = 14,
  kBFloat16 = 15,
  kQUInt4x2 = 16,
  kQUInt2x4 = 17,
  kBits16 = 22,
  kFloat8E5M2 = 23,
  kFloat8E4M3FN = 24,
  kFloat8E5M2FNUZ = 25,
  kFloat8E4M3FNUZ = 26,
  kUInt16 = 27,
  kUInt32 = 28,
  kUInt64 = 29,
};

/// Returns the size of an element in bytes: 1, 2, 4, 8 or 16; 0 for a number that is none of the above.
[[nodiscard]] ETSTREAM_EXPORT std::uint64_t item_size(ScalarType type) noexcept;
/// Returns whether it is a floating-point type, of 8 to 64 bits.
[[nodiscard]] ETSTREAM_EXPORT bool is_floating_point(ScalarType type) noexcept;
/// Returns the name that torch gives it: "float32", "float8_e4m3fn"; "unknown" for a number that is none of
/// the above.
[[nodiscard]] ETSTREAM_EXPORT std::string_view name_of(ScalarType type) noexcept;
/// Finds the type that torch, safetensors or people call `name`: "float16", "torch.half", "F16", "fp16".
[[nodiscard]] ETSTREAM_EXPORT std::optional<ScalarType> find_scalar_type(std::string_view name) noexcept;
/// Returns the size of a dense tensor in bytes: the product of `sizes`, times item_size(). Errors:
/// kInvalidArgument for a negative size or an unknown type, kTooLarge over 2^64 - 1.
[[nodiscard]] ETSTREAM_EXPORT Result<std::uint64_t> byte_size(ScalarType type,
                                                              std::span<const std::int32_t> sizes);

}  // namespace etstream
