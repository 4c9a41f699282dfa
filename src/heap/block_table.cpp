// SPDX-License-Identifier: BSD-3-Clause
#include "heap/block_table.h"

#include <bit>

namespace etstream::heap {
namespace {

/// How many ranges of about the right size are looked at before one is taken that is surely large enough.
constexpr int kMostTries = 32;

constexpr std::size_t bin_of(std::uint32_t granules) {
  return static_cast<std::size_t>(std::bit_width(granules)) - 1;
}

}  // namespace

void BlockTable::tag(std::uint32_t first, std::uint32_t granules, bool block) noexcept {
  const std::uint32_t tag = granules << 2 | (block ? kBlock : 0);
  entries_[first + granules - 1].tag = tag;
  entries_[first].tag = tag | kFirst;
}

void BlockTable::untag(std::uint32_t first) noexcept {
  entries_[first + granules_at(first) - 1].tag = 0;
  entries_[first].tag = 0;
}

void BlockTable::link(Range free) noexcept {
  tag(free.first, free.granules, false);
  std::uint32_t& head = bins_[bin_of(free.granules)];
  entries_[free.first].mapping = free.mapping;
  entries_[free.first].next = head;
  entries_[free.first].previous = 0;
  if (head != 0) entries_[head].previous = free.first;
  head = free.first;
}

Range BlockTable::unlink(std::uint32_t first) noexcept {
  const Entry entry = entries_[first];
  const Range range{first, granules_at(first), entry.mapping};
  if (entry.next != 0) entries_[entry.next].previous = entry.previous;
  if (entry.previous != 0) {
    entries_[entry.previous].next = entry.next;
  } else {
    bins_[bin_of(range.granules)] = entry.next;
  }
  untag(first);
  return range;
}

Range BlockTable::find_free(std::uint32_t granules) noexcept {
  const std::size_t bin = bin_of(granules);
  std::uint32_t best = 0;
  int tries = 0;
  for (std::uint32_t at = bins_[bin]; at != 0 && tries < kMostTries; at = entries_[at].next, ++tries) {
    if (granules_at(at) >= granules && (best == 0 || granules_at(at) < granules_at(best))) best = at;
  }
  for (std::size_t larger = bin + 1; best == 0 && larger < kBins; ++larger) best = bins_[larger];
  return best == 0 ? Range{} : unlink(best);
}

/// A range that is neither free nor a block.
Range BlockTable::take_any(std::uint32_t granules) noexcept {
  Range found = find_free(granules);
  if (!found) {
    if (granules > end_ - top_) return {};
    found = {top_, granules, 0};
    raise_top(granules);
  } else if (found.granules > granules) {
    link({found.first + granules, found.granules - granules, found.mapping});
    found.granules = granules;
  }
  return found;
}

Range BlockTable::take(std::uint32_t granules, std::uint32_t alignment) noexcept {
  if (granules == 0 || granules >= end_ || alignment > end_ - granules) return {};
  Range found = take_any(granules + alignment - 1);
  if (!found) return {};
  const std::uint32_t before = (alignment - found.first % alignment) % alignment;
  const std::uint32_t after = found.granules - before - granules;
  const Range block{found.first + before, granules, found.mapping};
  tag(block.first, granules, true);
  entries_[block.first].mapping = block.mapping;
  if (before != 0) free_range({found.first, before, found.mapping});
  if (after != 0) free_range({block.first + granules, after, found.mapping});
  return block;
}

void BlockTable::free_range(Range range) noexcept {
  const auto join = [&](Range other) {
    if (other.mapping != range.mapping) range.mapping = 0;
    range.granules += other.granules;
  };
  const std::uint32_t behind = range.first + range.granules;
  if (behind < top_ && is_free(behind)) join(unlink(behind));
  if (range.first > 1 && is_free(range.first - 1)) {
    const Range before = unlink(range.first - granules_at(range.first - 1));
    join(before);
    range.first = before.first;
  }
  if (range.first + range.granules == top_) {
    // What is mapped there stays so; whoever takes it maps it anew.
    top_ = range.first;
  } else {
    link(range);
  }
}

void BlockTable::give_back(std::uint32_t first, std::uint32_t mapping) noexcept {
  const Range range{first, granules_at(first), mapping};
  untag(first);
  free_range(range);
}

Range BlockTable::extend(std::uint32_t first, std::uint32_t granules) noexcept {
  const std::uint32_t now = granules_at(first);
  const std::uint32_t behind = first + now;
  const std::uint32_t missing = granules - now;
  Range added{behind, missing, 0};
  if (behind == top_) {
    if (missing > end_ - top_) return {};
    raise_top(missing);
  } else {
    if (!is_free(behind) || granules_at(behind) < missing) return {};
    const Range free = unlink(behind);
    added.mapping = free.mapping;
    if (free.granules > missing) link({behind + missing, free.granules - missing, free.mapping});
  }
  untag(first);
  tag(first, granules, true);
  return added;
}

void BlockTable::shrink(std::uint32_t first, std::uint32_t granules, std::uint32_t mapping) noexcept {
  const std::uint32_t now = granules_at(first);
  if (granules == now) return;
  untag(first);
  tag(first, granules, true);
  free_range({first + granules, now - granules, mapping});
}

Range BlockTable::block(std::uint32_t first) const noexcept {
  if (first >= top_ || (entries_[first].tag & (kFirst | kBlock)) != (kFirst | kBlock)) return {};
  return {first, granules_at(first), entries_[first].mapping};
}

std::size_t BlockTable::blocks_from(std::uint32_t first, std::span<Range> found) const noexcept {
  std::size_t count = 0;
  for_each_block([&](Range range) {
    if (range.first >= first && count < found.size()) found[count++] = range;
  });
  return count;
}

}  // namespace etstream::heap
