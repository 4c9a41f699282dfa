// SPDX-License-Identifier: BSD-3-Clause
//
// Which parts of the heap's address space are blocks and which are free: best fit by powers of two,
// neighbours joined by tags at both ends of each range. Free ranges are ready or not: ready ones have kept
// their room on the disk since they were freed, and are taken first. It knows numbers of granules alone,
// calls nothing and allocates nothing, so that it can serve malloc.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace etstream::heap {

/// A part of the address space, in granules. Granule 0 is none of it, and stands for nothing.
struct Range {
  std::uint32_t first = 0;
  std::uint32_t granules = 0;
  /// What is mapped there: a number of the caller's; 0 where that differs within the range, where nothing
  /// is, or where the range is ready.
  std::uint32_t mapping = 0;
  /// Whether it was given back so.
  bool is_ready = false;

  explicit operator bool() const noexcept { return first != 0; }
};

/// One thread at a time.
class BlockTable {
 public:
  /// What is known of a granule; zeros at first.
  struct Entry {
    std::uint32_t tag = 0;      // of a range's first and last granule: see tag()
    std::uint32_t mapping = 0;  // this and the rest: of the first granule alone; if ready: when it became so
    std::uint32_t next = 0;     // free ranges of about the size, the one that came last first
    std::uint32_t previous = 0;
  };

  constexpr BlockTable() = default;
  /// `entries` are as many as there are granules, all zero.
  constexpr BlockTable(Entry* entries, std::uint32_t granules) : entries_(entries), end_(granules) {}

  /// Makes a free range a block that begins at a multiple of `alignment`, a power of two. An empty range
  /// where there is no room.
  [[nodiscard]] Range take(std::uint32_t granules, std::uint32_t alignment) noexcept;

  /// Makes the block that begins there free. `mapping` is what is mapped in it by now, 0 if it is ready.
  void give_back(std::uint32_t first, std::uint32_t mapping, bool is_ready) noexcept;

  /// Makes a block longer, by as many granules or as many as are free in the range behind it. The part that
  /// was added, or an empty range.
  [[nodiscard]] Range extend(std::uint32_t first, std::uint32_t granules) noexcept;
  /// Makes a block two, the first of that many granules, less than it has. The second one.
  [[nodiscard]] Range split(std::uint32_t first, std::uint32_t granules) noexcept;

  /// Of the free granules, how many are ready.
  [[nodiscard]] std::uint32_t ready() const noexcept { return ready_; }
  /// Makes the range that has been ready for longest a block, or so many granules of it. An empty range if
  /// there is none.
  [[nodiscard]] Range take_oldest_ready(std::uint32_t most) noexcept;

  /// The block that begins there, or an empty range.
  [[nodiscard]] Range block(std::uint32_t first) const noexcept;
  /// The blocks that begin there or after it, as many as `found` has room for; how many. It looks at all
  /// before them.
  [[nodiscard]] std::size_t blocks_from(std::uint32_t first, std::span<Range> found) const noexcept;

  /// Calls `look(Range)` for each block, in order.
  template <class Look>
  void for_each_block(Look look) const noexcept {
    // Granules within a range have no tags.
    for (std::uint32_t at = 1; at < top_; at += granules_at(at)) {
      if (is_block(at)) look(block(at));
    }
  }

  /// One over the highest granule that was ever in use.
  [[nodiscard]] std::uint32_t highest() const noexcept { return highest_; }

  void set_mapping(std::uint32_t first, std::uint32_t mapping) noexcept { entries_[first].mapping = mapping; }

 private:
  static constexpr std::size_t kBins = 32;

  /// Free ranges of about the same size.
  struct Bin {
    std::uint32_t newest = 0;
    std::uint32_t oldest = 0;
  };
  using Bins = std::array<Bin, kBins>;

  static constexpr std::uint32_t kBlock = 1;
  static constexpr std::uint32_t kFirst = 2;
  static constexpr std::uint32_t kReady = 4;
  static constexpr std::uint32_t kFlagBits = 3;

  [[nodiscard]] bool is_block(std::uint32_t tagged) const noexcept {
    return (entries_[tagged].tag & kBlock) != 0;
  }
  [[nodiscard]] bool is_free(std::uint32_t tagged, bool ready) const noexcept {
    const std::uint32_t tag = entries_[tagged].tag;
    return tag != 0 && (tag & (kBlock | kReady)) == (ready ? kReady : 0);
  }
  [[nodiscard]] std::uint32_t granules_at(std::uint32_t tagged) const noexcept {
    return entries_[tagged].tag >> kFlagBits;
  }
  void tag(std::uint32_t first, std::uint32_t granules, std::uint32_t flags) noexcept;
  void untag(std::uint32_t first) noexcept;
  void link(Range free) noexcept;
  void link_oldest_ready(Range ready, std::uint32_t since) noexcept;
  Range unlink(std::uint32_t first) noexcept;
  [[nodiscard]] Range find_free(const Bins& bins, std::uint32_t granules) noexcept;
  [[nodiscard]] Range take_any(std::uint32_t granules) noexcept;
  void free_range(Range range) noexcept;
  void raise_top(std::uint32_t granules) noexcept {
    top_ += granules;
    if (highest_ < top_) highest_ = top_;
  }

  Entry* entries_ = nullptr;
  std::uint32_t end_ = 0;  // the number of entries
  std::uint32_t top_ = 1;  // nothing from here on was ever in use, or is since it was given back
  std::uint32_t highest_ = 1;
  std::uint32_t ready_ = 0;
  std::uint32_t times_readied_ = 0;
  Bins bins_{};
  Bins ready_bins_{};
};

}  // namespace etstream::heap
