// SPDX-License-Identifier: BSD-3-Clause
//
// Arithmetic on sizes and offsets that come from outside.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>

namespace etstream {

template <std::unsigned_integral T>
[[nodiscard]] constexpr std::optional<T> checked_add(T a, T b) noexcept {
  if (b > std::numeric_limits<T>::max() - a) return std::nullopt;
  return static_cast<T>(a + b);
}

template <std::unsigned_integral T>
[[nodiscard]] constexpr std::optional<T> checked_multiply(T a, T b) noexcept {
  if (a != 0 && b > std::numeric_limits<T>::max() / a) return std::nullopt;
  return static_cast<T>(a * b);
}

[[nodiscard]] constexpr bool is_power_of_two(std::uint64_t n) noexcept {
  return n != 0 && (n & (n - 1)) == 0;
}

/// Returns whether [offset, offset + size) lies in [0, limit).
[[nodiscard]] constexpr bool range_fits(std::uint64_t offset, std::uint64_t size,
                                        std::uint64_t limit) noexcept {
  return offset <= limit && size <= limit - offset;
}

/// Returns how many bytes bring `n` to a multiple of `alignment`, a power of two.
[[nodiscard]] constexpr std::uint64_t padding_to(std::uint64_t n, std::uint64_t alignment) noexcept {
  return (~n + 1) & (alignment - 1);
}

}  // namespace etstream
