// SPDX-License-Identifier: BSD-3-Clause
//
// The heap's limit: a thread checks how much of the heap is mapped in, and drops the pages over the limit. It
// is started when the blocks together are larger than the limit.
#include <time.h>

#include <algorithm>
#include <array>
#include <limits>

#include "memory/heap/heap_posix.h"
#include "memory/heap/in_use_posix.h"

namespace etstream::heap {
namespace {

/// The granules that are written at once, and the number of such windows on their way to the disk.
constexpr std::uint32_t kWindow = (8 << 20) / kGranule;
constexpr std::uint32_t kWindowsOnTheirWay = 4;
constexpr long kLookEveryNanoseconds = 20'000'000;
/// After so many looks at the process, the heap's own pages are counted in any case.
constexpr int kLooksUntilCounted = 50;
constexpr std::size_t kBatch = 64;
/// The size in granules below which a block is small. Small blocks, such as Python's arenas, hold objects
/// that are in use together: they go last.
constexpr std::uint32_t kSmallBlock = (1 << 20) / kGranule;
constexpr std::uint32_t kEnd = std::numeric_limits<std::uint32_t>::max();

}  // namespace

template <class Look>
void Heap::for_each_shared_block(std::uint32_t first, Look look) noexcept {
  std::array<Range, kBatch> batch;
  for (;;) {
    std::size_t count = 0;
    {
      const InUse use(*this);
      const Locked locked(lock_);
      count = table_.blocks_from(first, batch);
      for (Range& block : std::span(batch.data(), count)) {
        if (!is_shared(block)) block.granules = 0;
      }
    }
    for (const Range& block : std::span(batch.data(), count)) {
      if (!look(block)) return;
      first = block.first + 1;
    }
    if (count == 0) return;
  }
}

std::uint64_t Heap::resident_bytes() noexcept {
  const PageMap page_map;
  std::uint64_t resident = 0;
  for_each_shared_block(1, [&](Range block) {
    resident += page_map.resident_bytes(part_of(block));
    return true;
  });
  return resident;
}

/// Drops a block's pages. The block may be freed and its place taken meanwhile: pages are read again when
/// they are used.
std::uint64_t Heap::let_go_of(Range block) noexcept {
  const std::uint64_t before = mapped_bytes();
  const auto window_at = [&](std::uint32_t at) -> Range {
    return at < block.granules ? Range{block.first + at, std::min(kWindow, block.granules - at)} : Range{};
  };
  // Pages of a copy exist nowhere else, and after a fork the block may be one.
  const auto is_shared_now = [&](Range window) {
    const Locked locked(lock_);
    return is_shared(window);
  };
  constexpr std::uint32_t kBehind = kWindow * kWindowsOnTheirWay;
  for (std::uint32_t at = 0; at < block.granules + kBehind; at += kWindow) {
    const InUse use(*this);
    const Range next = window_at(at);
    if (!file_.is_intact() || (next && !is_shared_now(next))) break;
    if (next) file_.begin_writing(part_of(next));
    if (at >= kBehind && window_at(at - kBehind)) file_.end_writing(part_of(window_at(at - kBehind)));
  }
  const std::uint64_t after = mapped_bytes();
  return before > after ? before - after : 0;
}

std::uint64_t Heap::page_out(std::uint64_t bytes) noexcept {
  std::uint64_t done = page_out_blocks(bytes, kSmallBlock + 1, kEnd);
  if (done < bytes) done += page_out_blocks(bytes - done, 1, kSmallBlock);
  use_->paged_out.fetch_add(done, std::memory_order_relaxed);
  return done;
}

std::uint64_t Heap::page_out_blocks(std::uint64_t bytes, std::uint32_t fewest, std::uint32_t most) noexcept {
  std::uint64_t done = 0;
  const auto page_out_in = [&](std::uint32_t begin, std::uint32_t end) {
    for_each_shared_block(begin, [&](Range block) {
      if (done >= bytes || block.first >= end) return false;
      if (block.granules >= fewest && block.granules <= most) done += let_go_of(block);
      hand_ = block.first + 1;
      return true;
    });
  };
  const std::uint32_t began_at = hand_;
  page_out_in(began_at, kEnd);
  if (done < bytes) page_out_in(1, began_at);
  return done;
}

void Heap::keep_to_limit() noexcept {
  std::uint64_t others = 0;  // what is mapped in of other files
  for (int looks = 1;; ++looks) {
    const ::timespec pause{.tv_sec = 0, .tv_nsec = kLookEveryNanoseconds};
    ::nanosleep(&pause, nullptr);
    const std::uint64_t limit = limit_.load(std::memory_order_relaxed);
    if (limit == 0 || use_->live.load(std::memory_order_relaxed) <= limit) continue;
    const std::uint64_t mapped = mapped_bytes();
    if (mapped <= others + limit && looks < kLooksUntilCounted) continue;
    looks = 0;
    const std::uint64_t resident = resident_bytes();
    others = mapped - std::min(mapped, resident);
    if (resident > limit) page_out(resident - limit + limit / 8);
  }
}

void Heap::watch_limit() noexcept {
  const std::uint64_t limit = limit_.load(std::memory_order_relaxed);
  if (limit == 0 || use_->live.load(std::memory_order_relaxed) <= limit) return;
  if (is_watched_.exchange(true)) return;
  // All signals are blocked here, and so in the thread.
  constexpr std::size_t kStack = 256 << 10;
  ::pthread_attr_t attributes;
  ::pthread_t thread{};
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  ::pthread_attr_setstacksize(&attributes, kStack);
  const auto run = [](void* heap) -> void* { static_cast<Heap*>(heap)->keep_to_limit(); };
  if (::pthread_create(&thread, &attributes, run, this) != 0) is_watched_.store(false);
  ::pthread_attr_destroy(&attributes);
}

}  // namespace etstream::heap
