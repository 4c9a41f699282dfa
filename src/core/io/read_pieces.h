// SPDX-License-Identifier: BSD-3-Clause
//
// Reads of a source: all of it, a piece at a time, to hash it or to look for something in it; and small ones
// at random places.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/base/hashes.h"
#include "core/base/try.h"
#include "etstream/byte_source.h"
#include "etstream/result.h"

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

// Small reads at random places of a source, through a few cached pages, and a search for padding bytes that
// are not zero.

/// Holds at most 512 KiB; 8 MiB of a source that is decoded, where a jump to a page that is not held takes a
/// hundred times as long. May be used by several threads at once.
class PagedReader {
 public:
  static constexpr std::size_t kPageSize = 4096;

  /// `name` is what messages call the source.
  PagedReader(ByteSource source, std::string name);

  [[nodiscard]] const ByteSource& source() const noexcept { return source_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// Fills `out` with the bytes from `offset` on. Errors: those of ByteSource::read_at.
  [[nodiscard]] Result<void> read(std::uint64_t offset, std::span<std::byte> out);

 private:
  static constexpr std::size_t kPages = 128;
  static constexpr std::size_t kPagesOfDecoded = 2048;
  static constexpr std::size_t kWays = 4;  // places that a page may be in
  static constexpr std::uint64_t kNoPage = ~std::uint64_t{0};

  /// Returns the bytes of page `number`, and reads them if they are not there.
  Result<std::span<const std::byte>> page(std::uint64_t number);

  const ByteSource source_;
  const std::string name_;
  std::mutex mutex_;                                 // guards what follows
  std::vector<std::unique_ptr<std::byte[]>> pages_;  // allocated as they are used
  std::vector<std::uint64_t> numbers_;               // of the page in each place
  std::vector<std::uint8_t> next_;                   // the way that is replaced next, in each set
};

struct NonzeroByte {
  std::uint64_t offset = 0;
  int value = 0;
};

/// Finds the first byte of `source` in [begin, end) that is not zero. The range is inside the source.
[[nodiscard]] Result<std::optional<NonzeroByte>> find_nonzero(const ByteSource& source, std::uint64_t begin,
                                                              std::uint64_t end);
/// Does the same in the source of `reader`, whose pages serve ranges that are shorter than a page.
[[nodiscard]] Result<std::optional<NonzeroByte>> find_nonzero(PagedReader& reader, std::uint64_t begin,
                                                              std::uint64_t end);

}  // namespace etstream
