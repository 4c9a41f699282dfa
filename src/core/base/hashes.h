// SPDX-License-Identifier: BSD-3-Clause
//
// Hashes and checksums of content that comes piece by piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/base/text.h"
#include "etstream/result.h"

namespace etstream {

/// The hash of content: see ContentHash. A hasher for one thread at a time.
class ContentHasher {
 public:
  /// Throws std::bad_alloc if there is no memory for its 576 bytes.
  ContentHasher();
  ContentHasher(ContentHasher&&) noexcept;
  ContentHasher& operator=(ContentHasher&&) noexcept;
  ~ContentHasher();

  void update(std::span<const std::byte> bytes) noexcept;
  /// Returns the hash of the bytes so far; more may follow.
  [[nodiscard]] ContentHash hash() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Returns a hash as 32 hexadecimal digits.
[[nodiscard]] inline std::string hex(const ContentHash& hash) {
  std::string out;
  for (const std::byte byte : hash) out += text("{:02x}", std::to_integer<unsigned>(byte));
  return out;
}

/// The hash by which ExecuTorch's backends name data. A hasher for one thread at a time.
class Sha256 {
 public:
  /// Throws std::bad_alloc if there is no memory for its 112 bytes.
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void update(std::span<const std::byte> bytes) noexcept;
  /// Returns the hash of all bytes as 64 hexadecimal digits in lower case. To be called once, after the last
  /// update().
  [[nodiscard]] std::string hex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Returns the checksum that zip archives have of some bytes, or of bytes whose checksum is `before` with
/// these behind them.
[[nodiscard]] std::uint32_t crc32_of(std::span<const std::byte> bytes, std::uint32_t before = 0) noexcept;

/// Returns the checksum of some bytes and the `size` bytes behind them, from the checksums of both. The
/// checksum of no bytes is 0. `size` is below 2^63.
[[nodiscard]] std::uint32_t joined_crc32(std::uint32_t first, std::uint32_t second,
                                         std::uint64_t size) noexcept;

}  // namespace etstream
