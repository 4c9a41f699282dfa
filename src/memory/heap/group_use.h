// SPDX-License-Identifier: BSD-3-Clause
//
// The numbers of granules that are in use or ready in each group of pages. The system reads pages of a file
// in groups (folios), and a write to one page needs room for the whole group: if the disk has none, the
// program gets a signal. So a group has room on the disk as a whole, from its first granule's use until its
// last one's end. Nothing here calls or allocates anything.
#pragma once

#include <algorithm>
#include <cstdint>

#include "memory/heap/block_table.h"

namespace etstream::heap {

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
