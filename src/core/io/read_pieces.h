// SPDX-License-Identifier: BSD-3-Clause
//
// All of a source, a piece at a time: to hash it, or to look for something in it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>

#include "core/base/content_hash.h"
#include "core/base/try.h"
#include "etstream/byte_source.h"

namespace etstream {

/// Calls `take` with the bytes of `source` in order, in pieces of up to 1 MiB, and has the source drop
/// their pages. Errors: those of reading.
template <class Take>
[[nodiscard]] Result<void> read_pieces(const ByteSource& source, Take take) {
  constexpr std::uint64_t kPiece = std::uint64_t{1} << 20;
  const std::uint64_t size = std::min(kPiece, source.size());
  const auto buffer = std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(size));
  for (std::uint64_t at = 0; at < source.size();) {
    const std::span piece(buffer.get(), static_cast<std::size_t>(std::min(size, source.size() - at)));
    ETSTREAM_TRY(source.read_at(at, piece));
    source.drop_pages(at, piece.size());
    take(std::span<const std::byte>(piece));
    at += piece.size();
  }
  return {};
}

/// Returns the hash of all bytes. Errors: those of reading.
[[nodiscard]] Result<ContentHash> hash_of(const ByteSource& source);

/// Bytes times keys, beyond which nobody waits for find_keys().
inline constexpr std::uint64_t kMostSearched = std::uint64_t{1} << 38;

/// Adds to `found` those of `keys` that `source` holds anywhere. An empty key is in any source. Memory: 1
/// MiB, and the longest key. Time: in proportion to the source's size times the number of keys. Errors: those
/// of reading.
[[nodiscard]] Result<void> find_keys(const ByteSource& source, const std::set<std::string>& keys,
                                     std::set<std::string>& found);

}  // namespace etstream
