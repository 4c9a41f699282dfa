// SPDX-License-Identifier: BSD-3-Clause
//
// ContentIndex: where bytes lie in a file, found by hashes of a few of them at equal distances.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/content_hash.h"
#include "etstream/packed_file.h"
#include "etstream/result.h"

namespace etstream {

/// An index of a file, the base, of any size. Memory: 3 MiB.
class ContentIndex {
 public:
  /// Reads all of `base`. Errors: those of reading.
  [[nodiscard]] static Result<ContentIndex> read(const ByteSource& base);

  /// Returns the hash of all of the base.
  [[nodiscard]] const ContentHash& hash() const noexcept { return hash_; }

  /// Appends ranges of `file` between two offsets that lie in the base, in order. A range goes on where bytes
  /// differ, up to the next that lie elsewhere. Errors: those of reading.
  [[nodiscard]] Result<void> find(const ByteSource& file, std::uint64_t begin, std::uint64_t end,
                                  std::vector<BaseRange>& out) const;

 private:
  class Search;

  /// The hash of the bytes at a multiple of step_, which is the place of the slot, but for empty ones.
  struct Slot {
    std::uint32_t check = 0;
    std::uint32_t block = 0;  // the multiple, from 1 on; 0 of an empty slot
  };

  explicit ContentIndex(const ByteSource& base);

  void add(std::uint64_t hash, std::uint64_t offset) noexcept;
  /// Returns the slot that has a hash, whose bits are mixed, or the empty one for it, if there is room.
  [[nodiscard]] std::optional<std::size_t> slot_of(std::uint64_t bits) const noexcept;
  /// Returns the offset of bytes in the base that probably have the hash.
  [[nodiscard]] std::optional<std::uint64_t> offset_of(std::uint64_t hash) const noexcept;

  ByteSource base_;
  std::uint64_t step_;  // in bytes, between the bytes that are hashed
  ContentHash hash_{};
  std::vector<Slot> slots_;
  std::vector<std::uint64_t> there_;  // a bit for each slot that a hash belongs in, which is quick to look up
};

}  // namespace etstream
