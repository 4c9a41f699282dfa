// SPDX-License-Identifier: BSD-3-Clause
//
// Crc32: the checksum of zip archives, of bytes that come piece by piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace etstream {

/// A checksum for one thread at a time.
class Crc32 {
 public:
  void update(std::span<const std::byte> bytes) noexcept;
  /// Returns the checksum of the bytes so far; more may follow.
  [[nodiscard]] std::uint32_t value() const noexcept { return ~state_; }

 private:
  std::uint32_t state_ = ~std::uint32_t{0};
};

/// Returns the checksum of some bytes and the `size` bytes behind them, from the checksums of both. The
/// checksum of no bytes is 0.
[[nodiscard]] std::uint32_t joined_crc32(std::uint32_t first, std::uint32_t second,
                                         std::uint64_t size) noexcept;

}  // namespace etstream
