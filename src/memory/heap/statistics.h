// SPDX-License-Identifier: BSD-3-Clause
//
// The counts of the heaps in a tree of processes, in memory that they share with the process that started
// them.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace etstream::heap {

/// The counts of a process, in bytes unless noted. A new one is all zeros. After exec, the new program
/// continues the counts of the one before it.
struct ProcessUse {
  std::atomic<std::int32_t> process{0};
  std::atomic<std::uint32_t> refused{0};  // blocks that there was no room for
  std::atomic<std::uint64_t> blocks{0};   // handed out so far
  std::atomic<std::uint64_t> live{0};     // in blocks now
  std::atomic<std::uint64_t> peak{0};     // in blocks at most
  std::atomic<std::uint64_t> paged_out{0};

  void add(std::uint64_t bytes) noexcept {
    blocks.fetch_add(1, std::memory_order_relaxed);
    grow(bytes);
  }
  void grow(std::uint64_t bytes) noexcept {
    const std::uint64_t now = live.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    std::uint64_t before = peak.load(std::memory_order_relaxed);
    while (before < now && !peak.compare_exchange_weak(before, now, std::memory_order_relaxed)) {
    }
  }
  void remove(std::uint64_t bytes) noexcept { live.fetch_sub(bytes, std::memory_order_relaxed); }
};

/// The whole tree. Processes that come when all places are taken are counted, but have no place in it.
struct TreeUse {
  static constexpr std::size_t kPlaces = 4096;
  std::atomic<std::uint32_t> processes{0};
  std::array<ProcessUse, kPlaces> places{};

  /// Returns the place of a process, its old one if it had one; null if all are taken.
  [[nodiscard]] ProcessUse* place_of(std::int32_t process) noexcept {
    const std::uint32_t known = processes.load(std::memory_order_acquire);
    for (std::uint32_t at = 0; at < known && at < kPlaces; ++at) {
      if (places[at].process.load(std::memory_order_relaxed) == process) return &places[at];
    }
    const std::uint32_t at = processes.fetch_add(1, std::memory_order_acq_rel);
    if (at >= kPlaces) return nullptr;
    places[at].process.store(process, std::memory_order_relaxed);
    return &places[at];
  }
};

}  // namespace etstream::heap
