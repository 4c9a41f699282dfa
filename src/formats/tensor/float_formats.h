// SPDX-License-Identifier: BSD-3-Clause
//
// What the bits of the small floating-point types mean, and which bits mean a number best.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

namespace etstream {

/// How the largest exponent and the sign are used.
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

/// What these formats have in common with float32, in whose bits they are worked on.
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

/// `one` if a < b, otherwise `other`; for numbers up to 2^31, as signed ones that vector instructions
/// compare. Not a branch, which compilers do not put into such instructions where there is arithmetic on
/// floats around it.
[[nodiscard]] constexpr std::uint32_t if_less(std::uint32_t a, std::uint32_t b, std::uint32_t one,
                                              std::uint32_t other) noexcept {
  const std::uint32_t mask = static_cast<std::uint32_t>(static_cast<std::int32_t>(a - b) >> 31);
  return (one & mask) | (other & ~mask);
}

/// The value of `bits` as the bits of a float32, which every value of these formats is. A NaN keeps its sign
/// and its bits and becomes quiet, as x86-64's instructions have it; but of bfloat16 it stays as it is, and
/// the one of kFnuz is 0x7F800001, as torch has it.
template <FloatFormat kFormat>
[[nodiscard]] constexpr std::uint32_t float32_bits(std::uint32_t bits) noexcept {
  using Bits = FloatBits<kFormat>;
  constexpr std::uint32_t kQuiet = 0x00400000;

  const std::uint32_t sign = (bits & Bits::kSign) << (32 - Bits::kWidth);
  const std::uint32_t magnitude = (bits & (Bits::kSign - 1)) << Bits::kShift;
  if constexpr (kFormat == kBFloat16) return sign | magnitude;
  // A denormal gets the leading one that a normal number has, which is then taken away.
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

/// The value of `bits`, exactly.
template <FloatFormat kFormat>
[[nodiscard]] constexpr double decode_float(std::uint32_t bits) noexcept {
  return static_cast<double>(std::bit_cast<float>(float32_bits<kFormat>(bits)));
}

/// The bits of what is nearest to the float32 with the bits `float32`; of two, the even one. What is over the
/// largest number by half a place or more becomes infinity; where there is none, as torch has it: the largest
/// number in kFn, infinity too, and NaN in kFnuz. A NaN keeps its sign, but in kFnuz and bfloat16, and is
/// quiet: float16 keeps as many of its bits as it has, bfloat16 has 0x7FC0 for all, the others have all bits
/// set.
template <FloatFormat kFormat>
[[nodiscard]] constexpr std::uint32_t encode_float(std::uint32_t float32) noexcept {
  using Bits = FloatBits<kFormat>;
  constexpr std::uint32_t kMagnitude = 0x7FFFFFFF;
  constexpr std::uint32_t kAll = Bits::kSign - 1;

  const std::uint32_t magnitude = float32 & kMagnitude;
  const std::uint32_t sign = (float32 & ~kMagnitude) >> (32 - Bits::kWidth);
  // Under half a place, or half of one where that makes an odd number even, goes over into the next.
  constexpr std::uint32_t kUnderHalf = (1U << (Bits::kShift - 1)) - 1;
  const std::uint32_t odd = (magnitude >> Bits::kShift) & 1;
  const std::uint32_t normal = (magnitude - Bits::kRebias + kUnderHalf + odd) >> Bits::kShift;
  if constexpr (kFormat == kBFloat16) {
    return if_less(kFloat32Infinity, magnitude, 0x7FC0, sign | normal);
  }
  // A denormal is rounded by adding a number whose last place is worth its own.
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
