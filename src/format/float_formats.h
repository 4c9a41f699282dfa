// SPDX-License-Identifier: BSD-3-Clause
//
// What the bits of the small floating-point types mean.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

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
};

inline constexpr FloatFormat kFloat16{5, 10, 15, FloatSpecials::kIeee};
inline constexpr FloatFormat kBFloat16{8, 7, 127, FloatSpecials::kIeee};
inline constexpr FloatFormat kFloat8E5M2{5, 2, 15, FloatSpecials::kIeee};
inline constexpr FloatFormat kFloat8E4M3FN{4, 3, 7, FloatSpecials::kFn};
inline constexpr FloatFormat kFloat8E5M2FNUZ{5, 2, 16, FloatSpecials::kFnuz};
inline constexpr FloatFormat kFloat8E4M3FNUZ{4, 3, 8, FloatSpecials::kFnuz};

/// 2 to the power of `n`, -1022 to 1023.
[[nodiscard]] constexpr double power_of_two(int n) noexcept {
  return std::bit_cast<double>(static_cast<std::uint64_t>(n + 1023) << 52);
}

/// The value of `bits`, exactly.
template <FloatFormat kFormat>
[[nodiscard]] constexpr double decode_float(std::uint32_t bits) noexcept {
  constexpr std::uint32_t kMantissa = (1U << kFormat.mantissa_bits) - 1;
  constexpr std::uint32_t kExponent = (1U << kFormat.exponent_bits) - 1;
  constexpr std::uint32_t kSign = 1U << (kFormat.mantissa_bits + kFormat.exponent_bits);
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kSmallest = power_of_two(1 - kFormat.bias - kFormat.mantissa_bits);

  const std::uint32_t mantissa = bits & kMantissa;
  const std::uint32_t exponent = (bits >> kFormat.mantissa_bits) & kExponent;
  const double sign = (bits & kSign) != 0 ? -1 : 1;
  if (kFormat.specials == FloatSpecials::kFnuz && bits == kSign) return kNan;
  if (kFormat.specials == FloatSpecials::kFn && exponent == kExponent && mantissa == kMantissa) return kNan;
  if (kFormat.specials == FloatSpecials::kIeee && exponent == kExponent) {
    return mantissa == 0 ? sign * std::numeric_limits<double>::infinity() : kNan;
  }
  if (exponent == 0) return sign * mantissa * kSmallest;
  return sign * (mantissa + kMantissa + 1) * kSmallest * power_of_two(static_cast<int>(exponent) - 1);
}

}  // namespace etstream
