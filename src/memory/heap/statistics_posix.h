// SPDX-License-Identifier: BSD-3-Clause
//
// The counts of the heaps in a tree of processes, in memory that they share with the process that started
// them, and the environment variables by which `etstream run` configures the library that it has loaded
// before others.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace etstream::heap {

// Sizes in them are decimal numbers of bytes.
inline constexpr const char* kFolderVariable = "ETSTREAM_HEAP_FOLDER";
inline constexpr const char* kLimitVariable = "ETSTREAM_HEAP_LIMIT";
inline constexpr const char* kFromVariable = "ETSTREAM_HEAP_FROM";
/// A file that holds a TreeUse.
inline constexpr const char* kReportVariable = "ETSTREAM_HEAP_REPORT";

/// The default is so small because ExecuTorch's partitioners keep, for each node of a graph, the set of all
/// nodes that depend on it: tens of KiB each, hundreds of MiB together.
inline constexpr std::uint64_t kDefaultFrom = 16 << 10;

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

/// A block of a heap, in a table that all processes share. The address is set last and cleared first.
struct LargeBlock {
  std::atomic<std::uint64_t> address{0};  // in the process; 0 if there is no block here, 1 while it is set
  std::atomic<std::uint64_t> size{0};     // in bytes
  std::atomic<std::uint64_t> born{0};     // in nanoseconds of CLOCK_MONOTONIC
  std::atomic<std::int32_t> process{0};
};

/// The blocks of kSmallest bytes and more that are in use. Blocks that find no place near the one that their
/// address gives are left out.
struct LargeBlocks {
  static constexpr std::uint64_t kSmallest = 1 << 20;
  static constexpr std::size_t kPlaces = 8192;
  static constexpr std::size_t kNear = 128;
  std::array<LargeBlock, kPlaces> places{};

  void add(std::int32_t process, std::uint64_t address, std::uint64_t size, std::uint64_t born) noexcept {
    visit_near(address, [&](LargeBlock& block) {
      std::uint64_t none = 0;
      if (!block.address.compare_exchange_strong(none, 1, std::memory_order_acquire)) return false;
      block.size.store(size, std::memory_order_relaxed);
      block.born.store(born, std::memory_order_relaxed);
      block.process.store(process, std::memory_order_relaxed);
      block.address.store(address, std::memory_order_release);
      return true;
    });
  }
  void remove(std::int32_t process, std::uint64_t address) noexcept {
    visit_near(address, [&](LargeBlock& block) {
      if (block.address.load(std::memory_order_acquire) != address || block.process.load() != process)
        return false;
      block.address.store(0, std::memory_order_release);
      return true;
    });
  }
  /// Removes what is left of an earlier program of the process.
  void remove_all(std::int32_t process) noexcept {
    for (LargeBlock& block : places) {
      if (block.address.load() > 1 && block.process.load() == process) block.address.store(0);
    }
  }

 private:
  /// Calls `visit` with the places near that of an address, until it returns true.
  template <class Visit>
  void visit_near(std::uint64_t address, Visit visit) noexcept {
    const std::uint64_t first = (address >> 14) * 0x9e3779b97f4a7c15 >> 32;  // the golden ratio, times 2^64
    for (std::size_t i = 0; i < kNear; ++i) {
      if (visit(places[(first + i) % kPlaces])) return;
    }
  }
};

/// The whole tree. Processes that come when all places are taken are counted, but have no place in it.
struct TreeUse {
  static constexpr std::size_t kPlaces = 4096;
  std::atomic<std::uint32_t> processes{0};
  std::array<ProcessUse, kPlaces> places{};
  LargeBlocks large;

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

/// Opens the file that the environment names. Returns -1 if there is none, or if it has another size: another
/// version of etstream made it.
[[nodiscard]] inline int open_tree_use() noexcept {
  const char* const path = std::getenv(kReportVariable);
  const int file = path != nullptr ? ::open(path, O_RDWR | O_CLOEXEC) : -1;
  if (file < 0) return -1;
  struct ::stat found {};
  if (::fstat(file, &found) == 0 && found.st_size == sizeof(TreeUse)) return file;
  ::close(file);
  return -1;
}

}  // namespace etstream::heap
