// SPDX-License-Identifier: BSD-3-Clause
//
// Floating-point data in another type, converted while it is read; and the bits of the small types: the
// numbers that they mean, and the nearest bits for a number.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "etstream/byte_source.h"
#include "etstream/result.h"
#include "etstream/tensor.h"

namespace etstream {

/// Returns the elements of `source`, of the type `from`, as elements of the type `to`: float16, bfloat16,
/// float32, float64 and the four float8 types. A read takes at most 80 KiB of memory.
///
/// The bits are those that torch 2.13 gives on x86-64 for `tensor.to(dtype)`. All values go through float32,
/// so that a float64 is rounded twice on its way to 16 or 8 bits; each time to the nearest, and in a tie to
/// the even one. Too large a value becomes infinity. In a type without infinity it becomes the largest number
/// (float8_e4m3fn) or NaN (the FNUZ types). Torch's NaN may depend on how many elements its loop takes at
/// once. Here it is always the NaN of its AVX2 loops: from float32 and float64 to bfloat16 it is 0xFFFF, from
/// the other types 0x7FC0.
///
/// Errors: kInvalidArgument for another type, or a source that ends within an element; kTooLarge over 2^64 -
/// 1 bytes.
[[nodiscard]] Result<ByteSource> convert_floats(ByteSource source, ScalarType from, ScalarType to);

/// The meaning of the largest exponent and of the sign.
enum class FloatSpecials {
  kIeee,  // the largest exponent is for infinities and NaNs
  kFn,    // finite, but for NaN: all bits but the sign set
  kFnuz,  // finite, no negative zero: its bits are the only NaN
};

struct FloatFormat {
  int exponent_bits;
  int mantissa_bits;
  int bias;
  FloatSpecials specials;

  friend bool operator==(const FloatFormat&, const FloatFormat&) = default;
};

inline constexpr FloatFormat kFloat16{5, 10, 15, FloatSpecials::kIeee};
inline constexpr FloatFormat kBFloat16{8, 7, 127, FloatSpecials::kIeee};
inline constexpr FloatFormat kFloat8E5M2{5, 2, 15, FloatSpecials::kIeee};
inline constexpr FloatFormat kFloat8E4M3FN{4, 3, 7, FloatSpecials::kFn};
inline constexpr FloatFormat kFloat8E5M2FNUZ{5, 2, 16, FloatSpecials::kFnuz};
inline constexpr FloatFormat kFloat8E4M3FNUZ{4, 3, 8, FloatSpecials::kFnuz};

/// The relation of these formats to float32, in whose bits the work is done.
template <FloatFormat kFormat>
struct FloatBits {
  static constexpr int kWidth = 1 + kFormat.exponent_bits + kFormat.mantissa_bits;
  using Stored = std::conditional_t<kWidth == 8, std::uint8_t, std::uint16_t>;
  static constexpr std::uint32_t kSign = 1U << (kWidth - 1);
  static constexpr std::uint32_t kLargestExponent = ((1U << kFormat.exponent_bits) - 1)
                                                    << kFormat.mantissa_bits;
  static constexpr int kShift = 23 - kFormat.mantissa_bits;  // from our mantissa to float32's
  static constexpr std::uint32_t kRebias = static_cast<std::uint32_t>(127 - kFormat.bias) << 23;
};

inline constexpr std::uint32_t kFloat32Infinity = 0x7F800000;
inline constexpr std::uint32_t kFloat32ExponentOne = 0x00800000;

/// Returns `one` if a < b, otherwise `other`. Numbers are at most 2^31, and are compared as signed numbers,
/// as vector instructions do. There is no branch: compilers do not turn a branch into such instructions if
/// arithmetic on floats surrounds it.
[[nodiscard]] constexpr std::uint32_t if_less(std::uint32_t a, std::uint32_t b, std::uint32_t one,
                                              std::uint32_t other) noexcept {
  const std::uint32_t mask = static_cast<std::uint32_t>(static_cast<std::int32_t>(a - b) >> 31);
  return (one & mask) | (other & ~mask);
}

/// Returns the value of `bits` as the bits of a float32, which has every value of these formats. A NaN keeps
/// its sign and its bits and becomes quiet, as with x86-64's instructions. As in torch, a NaN of bfloat16
/// stays as it is, and the NaN of kFnuz becomes 0x7F800001.
template <FloatFormat kFormat>
[[nodiscard]] constexpr std::uint32_t float32_bits(std::uint32_t bits) noexcept {
  using Bits = FloatBits<kFormat>;
  constexpr std::uint32_t kQuiet = 0x00400000;

  const std::uint32_t sign = (bits & Bits::kSign) << (32 - Bits::kWidth);
  const std::uint32_t magnitude = (bits & (Bits::kSign - 1)) << Bits::kShift;
  if constexpr (kFormat == kBFloat16) return sign | magnitude;
  // A denormal gets the leading one that a normal number has, which is then subtracted.
  constexpr std::uint32_t kOne = Bits::kRebias + kFloat32ExponentOne;
  const std::uint32_t led = magnitude + if_less(magnitude, kFloat32ExponentOne, kOne, Bits::kRebias);
  const std::uint32_t lead = if_less(magnitude, kFloat32ExponentOne, kOne, 0);
  const auto finite = std::bit_cast<std::uint32_t>(std::bit_cast<float>(led) - std::bit_cast<float>(lead));
  const std::uint32_t special = magnitude | kFloat32Infinity;
  if constexpr (kFormat.specials == FloatSpecials::kFnuz) {
    return bits == Bits::kSign ? kFloat32Infinity + 1 : sign | finite;
  } else if constexpr (kFormat.specials == FloatSpecials::kFn) {
    return sign | (magnitude == (Bits::kSign - 1) << Bits::kShift ? special : finite);
  } else {
    constexpr std::uint32_t kInfinity = Bits::kLargestExponent << Bits::kShift;
    const std::uint32_t nan_or_infinity = special | if_less(kInfinity, magnitude, kQuiet, 0);
    return sign | if_less(magnitude, kInfinity, finite, nan_or_infinity);
  }
}

/// Returns the value of `bits`, exactly.
template <FloatFormat kFormat>
[[nodiscard]] constexpr double decode_float(std::uint32_t bits) noexcept {
  return static_cast<double>(std::bit_cast<float>(float32_bits<kFormat>(bits)));
}

/// Returns the bits of the nearest number to the float32 with the bits `float32`; in a tie, of the even one.
/// A number that exceeds the largest one by half a place or more becomes infinity. In a format without
/// infinity, the result is torch's: in kFn the largest number, also for infinity, and in kFnuz NaN. A NaN
/// becomes quiet. It keeps its sign, except in kFnuz and bfloat16. float16 keeps as many of its bits as fit,
/// bfloat16 has 0x7FC0 for every NaN, and the others have all bits set.
template <FloatFormat kFormat>
[[nodiscard]] constexpr std::uint32_t encode_float(std::uint32_t float32) noexcept {
  using Bits = FloatBits<kFormat>;
  constexpr std::uint32_t kMagnitude = 0x7FFFFFFF;
  constexpr std::uint32_t kAll = Bits::kSign - 1;

  const std::uint32_t magnitude = float32 & kMagnitude;
  const std::uint32_t sign = (float32 & ~kMagnitude) >> (32 - Bits::kWidth);
  // The sum carries into the next place from over half a place on, or from half a place on if that makes an
  // odd number even.
  constexpr std::uint32_t kUnderHalf = (1U << (Bits::kShift - 1)) - 1;
  const std::uint32_t odd = (magnitude >> Bits::kShift) & 1;
  const std::uint32_t normal = (magnitude - Bits::kRebias + kUnderHalf + odd) >> Bits::kShift;
  if constexpr (kFormat == kBFloat16) {
    return if_less(kFloat32Infinity, magnitude, 0x7FC0, sign | normal);
  }
  // A denormal is rounded by adding a number whose last place has the same value.
  constexpr auto kLarge = static_cast<std::uint32_t>(127 + 23 + 1 - kFormat.bias - kFormat.mantissa_bits)
                          << 23;
  const float sum = std::bit_cast<float>(magnitude) + std::bit_cast<float>(kLarge);
  const std::uint32_t rounded = if_less(magnitude, Bits::kRebias + kFloat32ExponentOne,
                                        std::bit_cast<std::uint32_t>(sum) - kLarge, normal);
  if constexpr (kFormat.specials == FloatSpecials::kFnuz) {
    return if_less(kAll, rounded, Bits::kSign, if_less(rounded, 1, 0, sign | rounded));
  } else if constexpr (kFormat.specials == FloatSpecials::kFn) {
    constexpr std::uint32_t kLargest = kAll - 1;
    return sign | if_less(kFloat32Infinity, magnitude, kAll, if_less(kLargest, rounded, kLargest, rounded));
  } else {
    const std::uint32_t finite = if_less(Bits::kLargestExponent, rounded, Bits::kLargestExponent, rounded);
    constexpr std::uint32_t kQuiet = Bits::kLargestExponent | (1U << (kFormat.mantissa_bits - 1));
    const std::uint32_t nan = kFormat == kFloat16 ? kQuiet | ((magnitude >> Bits::kShift) & kAll) : kAll;
    return sign | if_less(kFloat32Infinity, magnitude, nan, finite);
  }
}

}  // namespace etstream
