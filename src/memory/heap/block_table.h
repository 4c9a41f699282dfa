// SPDX-License-Identifier: BSD-3-Clause
//
// The blocks and the free parts of the heap's address space. The table takes the best fit of bins by powers
// of two, and joins free neighbours by tags at both ends of each range. A free range that is ready has kept
// its room on the disk since it was freed, and is taken first. A free range that is held is not taken, until
// it is a whole unit. The table works only with numbers of granules, and neither allocates nor calls
// anything, so that it can serve malloc.
//
// The numbers of granules that are in use or ready in each group of pages. The system reads pages of a file
// in groups (folios), and a write to one page needs room for the whole group: if the disk has none, the
// program gets a signal. So a group has room on the disk as a whole, from its first granule's use until its
// last one's end. Nothing here calls or allocates anything.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace etstream::heap {

/// A part of the address space, in granules. No range begins at granule 0: 0 stands for no range.
struct Range {
  std::uint32_t first = 0;
  std::uint32_t granules = 0;
  /// True if it is free and was given back as ready.
  bool is_ready = false;

  explicit operator bool() const noexcept { return first != 0; }
};

/// A table for one thread at a time.
class BlockTable {
 public:
  /// The record of a granule; zeros at first.
  struct Entry {
    std::uint32_t tag = 0;  // size and flags, in a range's first and last granule
    // These are set only in a free range's first granule:
    std::uint32_t readied = 0;   // when it became ready
    std::uint32_t next = 0;      // the free range of the same bin that is next older
    std::uint32_t previous = 0;  // and next newer
  };

  constexpr BlockTable() = default;
  /// `entries` are as many as there are granules, all zero. A unit is `unit` granules, of which there are a
  /// whole number.
  constexpr BlockTable(Entry* entries, std::uint32_t granules, std::uint32_t unit)
      : entries_(entries), end_(granules), unit_(unit) {}

  /// Takes a block that begins at a multiple of `alignment`, a power of two. Returns an empty range if there
  /// is no room.
  [[nodiscard]] Range take(std::uint32_t granules, std::uint32_t alignment) noexcept;

  /// Frees the block that begins there.
  void give_back(std::uint32_t first, bool is_ready) noexcept;
  /// Frees the block that begins there, as held. Returns the units of which all is held by then, as a block.
  [[nodiscard]] Range hold(std::uint32_t first) noexcept;
  /// Holds what is free in units that have blocks. Nothing may be ready.
  void hold_free() noexcept;

  /// Makes a block longer by that many granules, or by those free behind it. Returns the part that was added.
  [[nodiscard]] Range extend(std::uint32_t first, std::uint32_t granules) noexcept;
  /// Splits a block into two; the first has so many granules. Returns the second.
  [[nodiscard]] Range split(std::uint32_t first, std::uint32_t granules) noexcept;

  /// Returns how many of the free granules are ready.
  [[nodiscard]] std::uint32_t ready() const noexcept { return ready_; }
  /// Takes the range that was ready first, or `most` granules of it, as a block. Returns an empty range if
  /// none is ready.
  [[nodiscard]] Range take_oldest_ready(std::uint32_t most) noexcept;

  /// Returns the block that begins there, or an empty range.
  [[nodiscard]] Range block(std::uint32_t first) const noexcept;
  /// Finds up to found.size() blocks that begin there or later. Returns how many. Walks over all blocks
  /// before.
  [[nodiscard]] std::size_t blocks_from(std::uint32_t first, std::span<Range> found) const noexcept;

  /// Calls `look(Range)` for each block, in order.
  template <class Look>
  void for_each_block(Look look) const noexcept {
    // Granules within a range have no tags.
    for (std::uint32_t at = 1; at < top_; at += granules_at(at)) {
      if (is_block(at)) look(block(at));
    }
  }

  /// Returns the number above the highest granule that was ever in use.
  [[nodiscard]] std::uint32_t highest() const noexcept { return highest_; }

 private:
  static constexpr std::size_t kBins = 32;

  /// A bin of free ranges of about the same size.
  struct Bin {
    std::uint32_t newest = 0;
    std::uint32_t oldest = 0;
  };
  using Bins = std::array<Bin, kBins>;

  static constexpr std::uint32_t kBlock = 1;
  static constexpr std::uint32_t kFirst = 2;
  static constexpr std::uint32_t kReady = 4;
  static constexpr std::uint32_t kHeld = 8;
  static constexpr std::uint32_t kFlagBits = 4;

  [[nodiscard]] bool is_block(std::uint32_t tagged) const noexcept {
    return (entries_[tagged].tag & kBlock) != 0;
  }
  [[nodiscard]] bool is_free(std::uint32_t tagged, bool ready) const noexcept {
    const std::uint32_t tag = entries_[tagged].tag;
    return tag != 0 && (tag & (kBlock | kReady | kHeld)) == (ready ? kReady : 0);
  }
  [[nodiscard]] bool is_held(std::uint32_t tagged) const noexcept {
    return (entries_[tagged].tag & kHeld) != 0;
  }
  [[nodiscard]] std::uint32_t granules_at(std::uint32_t tagged) const noexcept {
    return entries_[tagged].tag >> kFlagBits;
  }
  void tag(std::uint32_t first, std::uint32_t granules, std::uint32_t flags) noexcept;
  void untag(std::uint32_t first) noexcept;
  /// Puts a free range into its bin as the newest there; or as the oldest, for the rest of a ready range that
  /// was cut, which became ready at the time `readied`.
  void link(Range free, bool as_oldest = false, std::uint32_t readied = 0) noexcept;
  Range unlink(std::uint32_t first) noexcept;
  [[nodiscard]] Range find_free(const Bins& bins, std::uint32_t granules) noexcept;
  [[nodiscard]] Range take_any(std::uint32_t granules) noexcept;
  void free_range(Range range) noexcept;
  Range hold_ends(std::uint32_t first, std::uint32_t end) noexcept;
  void raise_top(std::uint32_t granules) noexcept {
    top_ += granules;
    if (highest_ < top_) highest_ = top_;
  }

  Entry* entries_ = nullptr;
  std::uint32_t end_ = 0;  // the number of entries
  std::uint32_t unit_ = 1;
  std::uint32_t top_ = 1;  // from here on all granules are free, and in no range
  std::uint32_t highest_ = 1;
  std::uint32_t ready_ = 0;
  std::uint32_t times_readied_ = 0;
  Bins bins_{};
  Bins ready_bins_{};
};

/// A counter for one thread at a time.
class GroupUse {
 public:
  constexpr GroupUse() = default;
  /// `counts` has one for each group, all zero.
  constexpr GroupUse(std::uint16_t* counts, std::uint32_t granules_per_group)
      : counts_(counts), per_group_(granules_per_group) {}

  /// Counts granules that come into use. Returns the groups, as a range of granules, that had none in use
  /// before. They follow each other, as all groups except the first and the last lie within the range.
  [[nodiscard]] Range take(Range range) noexcept { return count(range, 1); }
  /// Stops counting granules that take() counted. Returns the groups that have none in use now.
  [[nodiscard]] Range give_back(Range range) noexcept { return count(range, -1); }
  /// Sets all counts to zero. No granule from `end` on was ever counted.
  void clear(std::uint32_t end) noexcept { std::fill_n(counts_, (end + per_group_ - 1) / per_group_, 0); }

 private:
  /// Adds `each` for each granule. Returns the groups whose count was or became 0.
  Range count(Range range, int each) noexcept {
    const std::uint32_t end = range.first + range.granules;
    std::uint32_t first = 0;
    std::uint32_t groups = 0;
    for (std::uint32_t at = range.first; at < end;) {
      const std::uint32_t group = at / per_group_;
      const std::uint32_t next = std::min(end, (group + 1) * per_group_);
      const std::uint16_t before = counts_[group];
      counts_[group] = static_cast<std::uint16_t>(before + each * static_cast<int>(next - at));
      if (before == 0 || counts_[group] == 0) {
        if (groups++ == 0) first = group;
      }
      at = next;
    }
    return {first * per_group_, groups * per_group_};
  }

  std::uint16_t* counts_ = nullptr;
  std::uint32_t per_group_ = 1;
};

}  // namespace etstream::heap
