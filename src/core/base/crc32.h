// SPDX-License-Identifier: BSD-3-Clause
//
// The checksum of zip archives, by zlib.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace etstream {

/// Returns the checksum of some bytes, or of bytes whose checksum is `before` with these behind them.
[[nodiscard]] std::uint32_t crc32_of(std::span<const std::byte> bytes, std::uint32_t before = 0) noexcept;

/// Returns the checksum of some bytes and the `size` bytes behind them, from the checksums of both. The
/// checksum of no bytes is 0. `size` is below 2^63.
[[nodiscard]] std::uint32_t joined_crc32(std::uint32_t first, std::uint32_t second,
                                         std::uint64_t size) noexcept;

}  // namespace etstream
