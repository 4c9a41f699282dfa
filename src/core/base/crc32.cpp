// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/crc32.h"

#include <array>
#include <bit>
#include <cstring>

namespace etstream {
namespace {

// Polynomials over one bit, the highest power in the lowest bit, modulo that of CRC-32.
constexpr std::uint32_t kPolynomial = 0xedb88320;
constexpr std::uint32_t kUnit = 0x80000000;

constexpr std::uint32_t times_x(std::uint32_t a) noexcept {
  return (a & 1) != 0 ? (a >> 1) ^ kPolynomial : a >> 1;
}

constexpr std::uint32_t product(std::uint32_t a, std::uint32_t b) noexcept {
  std::uint32_t out = 0;
  for (std::uint32_t bit = kUnit; bit != 0; bit >>= 1) {
    if ((a & bit) != 0) out ^= b;
    b = times_x(b);
  }
  return out;
}

constexpr std::size_t kBytesAtOnce = 16;  // bytes that are looked up at once
using Table = std::array<std::uint32_t, 256>;

/// Returns tables whose entry [n][byte] is what `byte` adds to the checksum with n bytes behind it.
constexpr std::array<Table, kBytesAtOnce> make_tables() noexcept {
  std::array<Table, kBytesAtOnce> out{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = times_x(value);
    out[0][byte] = value;
  }
  for (std::size_t n = 1; n < kBytesAtOnce; ++n) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = out[n - 1][byte];
      out[n][byte] = (before >> 8) ^ out[0][before & 0xff];
    }
  }
  return out;
}

constexpr std::array<Table, kBytesAtOnce> kTables = make_tables();

static_assert(std::endian::native == std::endian::little, "words are looked up from their lowest byte on");

}  // namespace

void Crc32::update(std::span<const std::byte> bytes) noexcept {
  std::uint32_t state = state_;
  for (; bytes.size() >= kBytesAtOnce; bytes = bytes.subspan(kBytesAtOnce)) {
    std::array<std::uint32_t, kBytesAtOnce / 4> words{};
    std::memcpy(words.data(), bytes.data(), kBytesAtOnce);
    words[0] ^= state;
    state = 0;
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::size_t behind = kBytesAtOnce - 1 - 4 * i;
      state ^= kTables[behind][words[i] & 0xff] ^ kTables[behind - 1][words[i] >> 8 & 0xff] ^
               kTables[behind - 2][words[i] >> 16 & 0xff] ^ kTables[behind - 3][words[i] >> 24];
    }
  }
  for (const std::byte byte : bytes) {
    state = (state >> 8) ^ kTables[0][(state ^ std::to_integer<std::uint32_t>(byte)) & 0xff];
  }
  state_ = state;
}

std::uint32_t joined_crc32(std::uint32_t first, std::uint32_t second, std::uint64_t size) noexcept {
  // Each byte behind it multiplies the first by x to the power of 8.
  std::uint32_t factor = kUnit;
  for (std::uint32_t power = kUnit >> 8; size != 0; size >>= 1, power = product(power, power)) {
    if ((size & 1) != 0) factor = product(power, factor);
  }
  return product(factor, first) ^ second;
}

}  // namespace etstream
