// SPDX-License-Identifier: BSD-3-Clause
//
// ContentHasher: the hash of content that comes piece by piece.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "core/base/text.h"
#include "etstream/content_hash.h"

namespace etstream {

/// A hasher for one thread at a time.
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

}  // namespace etstream
