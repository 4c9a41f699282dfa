// SPDX-License-Identifier: BSD-3-Clause
#include "memory/heap/block_table.h"

#include <bit>

namespace etstream::heap {
namespace {

/// The most ranges of a bin that are tried before one is taken from a bin in which all are large enough.
constexpr int kMostTries = 32;

constexpr std::size_t bin_of(std::uint32_t granules) {
  return static_cast<std::size_t>(std::bit_width(granules)) - 1;
}

}  // namespace

void BlockTable::tag(std::uint32_t first, std::uint32_t granules, std::uint32_t flags) noexcept {
  const std::uint32_t tag = granules << kFlagBits | flags;
  entries_[first + granules - 1].tag = tag;
  entries_[first].tag = tag | kFirst;
}

void BlockTable::untag(std::uint32_t first) noexcept {
  entries_[first + granules_at(first) - 1].tag = 0;
  entries_[first].tag = 0;
}

void BlockTable::link(Range free, bool as_oldest, std::uint32_t readied) noexcept {
  tag(free.first, free.granules, free.is_ready ? kReady : 0);
  Bin& bin = (free.is_ready ? ready_bins_ : bins_)[bin_of(free.granules)];
  Entry& entry = entries_[free.first];
  entry.readied = free.is_ready && !as_oldest ? ++times_readied_ : readied;
  entry.next = as_oldest ? 0 : bin.newest;
  entry.previous = as_oldest ? bin.oldest : 0;
  (entry.next != 0 ? entries_[entry.next].previous : bin.oldest) = free.first;
  (entry.previous != 0 ? entries_[entry.previous].next : bin.newest) = free.first;
  if (free.is_ready) ready_ += free.granules;
}

Range BlockTable::unlink(std::uint32_t first) noexcept {
  const Entry entry = entries_[first];
  const bool is_ready = (entry.tag & kReady) != 0;
  const Range range{first, granules_at(first), is_ready};
  Bin& bin = (is_ready ? ready_bins_ : bins_)[bin_of(range.granules)];
  (entry.next != 0 ? entries_[entry.next].previous : bin.oldest) = entry.previous;
  (entry.previous != 0 ? entries_[entry.previous].next : bin.newest) = entry.next;
  if (is_ready) ready_ -= range.granules;
  untag(first);
  return range;
}

Range BlockTable::find_free(const Bins& bins, std::uint32_t granules) noexcept {
  const std::size_t bin = bin_of(granules);
  std::uint32_t best = 0;
  int tries = 0;
  for (std::uint32_t at = bins[bin].newest; at != 0 && tries < kMostTries; at = entries_[at].next, ++tries) {
    if (granules_at(at) >= granules && (best == 0 || granules_at(at) < granules_at(best))) best = at;
  }
  for (std::size_t larger = bin + 1; best == 0 && larger < kBins; ++larger) best = bins[larger].newest;
  return best == 0 ? Range{} : unlink(best);
}

/// Takes a range of free granules, which is neither free nor a block then.
Range BlockTable::take_any(std::uint32_t granules) noexcept {
  Range found = find_free(ready_bins_, granules);
  if (!found) found = find_free(bins_, granules);
  if (!found) {
    if (granules > end_ - top_) return {};
    found = {top_, granules};
    raise_top(granules);
  } else if (found.granules > granules) {
    Range rest = found;
    rest.first += granules;
    rest.granules -= granules;
    link(rest);
    found.granules = granules;
  }
  return found;
}

Range BlockTable::take(std::uint32_t granules, std::uint32_t alignment) noexcept {
  if (granules == 0 || granules >= end_ || alignment > end_ - granules) return {};
  const Range found = take_any(granules + alignment - 1);
  if (!found) return {};
  const std::uint32_t before = (alignment - found.first % alignment) % alignment;
  const std::uint32_t after = found.granules - before - granules;
  Range block = found;
  block.first += before;
  block.granules = granules;
  tag(block.first, granules, kBlock);
  if (before != 0) free_range({found.first, before, found.is_ready});
  if (after != 0) free_range({block.first + granules, after, found.is_ready});
  return block;
}

void BlockTable::free_range(Range range) noexcept {
  const std::uint32_t behind = range.first + range.granules;
  if (behind < top_ && is_free(behind, range.is_ready)) range.granules += unlink(behind).granules;
  if (is_free(range.first - 1, range.is_ready)) {  // granule 0 has no tag, and so is not free
    const Range before = unlink(range.first - granules_at(range.first - 1));
    range.first = before.first;
    range.granules += before.granules;
  }
  if (range.first + range.granules == top_ && !range.is_ready) {
    top_ = range.first;
  } else {
    link(range);
  }
}

void BlockTable::give_back(std::uint32_t first, bool is_ready) noexcept {
  const Range range{first, granules_at(first), is_ready};
  untag(first);
  free_range(range);
}

/// Holds a range without tags, except the whole units in it. Returns these, without tags.
Range BlockTable::hold_ends(std::uint32_t first, std::uint32_t end) noexcept {
  // Granule 0 is in no range, so that the first unit is whole without it.
  const std::uint32_t begin_whole = first == 1 ? 1 : (first + unit_ - 1) / unit_ * unit_;
  const std::uint32_t end_whole = end / unit_ * unit_;
  if (begin_whole >= end_whole) {
    tag(first, end - first, kHeld);
    return {};
  }
  if (first < begin_whole) tag(first, begin_whole - first, kHeld);
  if (end_whole < end) tag(end_whole, end - end_whole, kHeld);
  return {begin_whole, end_whole - begin_whole};
}

Range BlockTable::hold(std::uint32_t first) noexcept {
  std::uint32_t end = first + granules_at(first);
  untag(first);
  if (end < top_ && is_held(end)) {
    const std::uint32_t behind = end;
    end += granules_at(behind);
    untag(behind);
  }
  if (is_held(first - 1)) {
    first -= granules_at(first - 1);
    untag(first);
  }
  const Range whole = hold_ends(first, end);
  if (whole) tag(whole.first, whole.granules, kBlock);
  return whole;
}

void BlockTable::hold_free() noexcept {
  for (std::uint32_t at = 1, next = 1; at < top_; at = next) {
    next = at + granules_at(at);
    if (!is_free(at, false)) continue;
    unlink(at);
    if (const Range whole = hold_ends(at, next)) link(whole);
  }
  // A block is below the top, unless this is at a unit's beginning.
  const std::uint32_t rest = top_ == 1 ? 0 : (unit_ - top_ % unit_) % unit_;
  if (rest == 0) return;
  tag(top_, rest, kHeld);
  raise_top(rest);
}

Range BlockTable::extend(std::uint32_t first, std::uint32_t granules) noexcept {
  const std::uint32_t now = granules_at(first);
  Range added{first + now, granules};
  if (added.first == top_) {
    if (granules > end_ - top_) return {};
    raise_top(granules);
  } else {
    if (is_block(added.first) || is_held(added.first)) return {};
    const Range free = unlink(added.first);
    added = free;
    if (free.granules > granules) {
      added.granules = granules;
      link({free.first + granules, free.granules - granules, free.is_ready});
    }
  }
  untag(first);
  tag(first, now + added.granules, kBlock);
  return added;
}

Range BlockTable::split(std::uint32_t first, std::uint32_t granules) noexcept {
  const Range second{first + granules, granules_at(first) - granules};
  untag(first);
  tag(first, granules, kBlock);
  tag(second.first, second.granules, kBlock);
  return second;
}

Range BlockTable::take_oldest_ready(std::uint32_t most) noexcept {
  std::uint32_t oldest = 0;
  for (const Bin& bin : ready_bins_) {
    // Differences are compared, as times_readied_ may have wrapped around.
    const auto age = [&](std::uint32_t first) { return times_readied_ - entries_[first].readied; };
    if (bin.oldest != 0 && (oldest == 0 || age(bin.oldest) > age(oldest))) oldest = bin.oldest;
  }
  if (oldest == 0) return {};
  const std::uint32_t since = entries_[oldest].readied;
  Range range = unlink(oldest);
  if (range.granules > most) {
    link({range.first + most, range.granules - most, true}, true, since);
    range.granules = most;
  }
  tag(range.first, range.granules, kBlock);
  return range;
}

Range BlockTable::block(std::uint32_t first) const noexcept {
  if (first >= top_ || (entries_[first].tag & (kFirst | kBlock)) != (kFirst | kBlock)) return {};
  return {first, granules_at(first)};
}

std::size_t BlockTable::blocks_from(std::uint32_t first, std::span<Range> found) const noexcept {
  std::size_t count = 0;
  for_each_block([&](Range range) {
    if (range.first >= first && count < found.size()) found[count++] = range;
  });
  return count;
}

}  // namespace etstream::heap
