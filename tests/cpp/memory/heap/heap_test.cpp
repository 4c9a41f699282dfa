// SPDX-License-Identifier: BSD-3-Clause
//
// The out-of-core heap, and the table of its blocks against a shadow of them.
#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "etstream/profile.h"
#include "memory/heap/block_table.h"
#include "memory/heap/heap_posix.h"
#include "memory/heap/shared_heap_linux.h"
#include "memory/heap/spill_file.h"
#include "memory/heap/statistics_posix.h"
#include "seeded_random.h"
#include "test_errors.h"
#include "test_fallocate.h"
#include "test_files.h"

namespace etstream::heap::heap_test {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

TEST_CASE(
    "blocks of a table never overlap, are joined again when they are free, and ready where all of them was, "
    "and not in units where free parts are held") {
  constexpr std::uint32_t kGranules = 4096;
  constexpr std::uint32_t kUnit = 64;
  std::vector<BlockTable::Entry> entries(kGranules);
  BlockTable table(entries.data(), kGranules, kUnit);
  std::map<std::uint32_t, std::uint32_t> shadow;  // the granules of the block that begins there
  std::vector<bool> ready(kGranules);             // of each granule, whether it is free and ready
  std::vector<bool> holds(kGranules / kUnit);     // of each unit, whether free parts are held
  const auto units = [&](std::uint32_t first, std::uint32_t granules, auto look) {
    for (std::uint32_t unit = first / kUnit; unit * kUnit < first + granules; ++unit) look(unit);
  };
  std::mt19937 engine(1);
  const auto chance = [&](std::size_t end) { return static_cast<std::uint32_t>(engine() % end); };
  const auto any = [&] { return std::next(shadow.begin(), chance(shadow.size())); };
  const auto is_free = [&](std::uint32_t first, std::uint32_t granules) {
    const auto after = shadow.lower_bound(first);
    if (after != shadow.end() && after->first < first + granules) return false;
    return after == shadow.begin() || std::prev(after)->first + std::prev(after)->second <= first;
  };
  const auto take = [&](Range taken) {
    REQUIRE(taken.first + taken.granules <= kGranules);
    REQUIRE(is_free(taken.first, taken.granules));
    const auto begin = ready.begin() + taken.first;
    REQUIRE(std::count(begin, begin + taken.granules, true) == (taken.is_ready ? taken.granules : 0));
    std::fill_n(begin, taken.granules, false);
    units(taken.first, taken.granules, [&](std::uint32_t unit) { REQUIRE_FALSE(holds[unit]); });
  };
  const auto give_back = [&](std::uint32_t first, std::uint32_t granules, bool is_ready) {
    if (!holds[first / kUnit]) {
      table.give_back(first, is_ready);
      std::fill_n(ready.begin() + first, granules, is_ready);
    } else if (const Range whole = table.hold(first)) {
      REQUIRE((whole.first == 1 || whole.first % kUnit == 0));
      REQUIRE((whole.first + whole.granules) % kUnit == 0);
      units(whole.first, whole.granules, [&](std::uint32_t unit) { holds[unit] = false; });
      take(whole);
      table.give_back(whole.first, false);
    }
  };
  for (std::uint64_t step = 0; step < 10'000 * testing::rounds(); ++step) {
    CAPTURE(step);
    const std::uint32_t granules = 1 + chance(chance(8) == 0 ? 500 : 20);
    const std::uint32_t what = chance(100) == 0 ? 9 : chance(9);
    if (what < 3) {
      const std::uint32_t alignment = 1U << chance(5);
      const Range taken = table.take(granules, alignment);
      if (!taken) continue;
      REQUIRE(taken.granules == granules);
      REQUIRE(taken.first % alignment == 0);
      take(taken);
      shadow[taken.first] = granules;
    } else if (what == 3) {
      const Range oldest = table.take_oldest_ready(granules);
      REQUIRE(static_cast<bool>(oldest) == (std::count(ready.begin(), ready.end(), true) > 0));
      if (!oldest) continue;
      REQUIRE(oldest.granules <= granules);
      take(oldest);
      table.give_back(oldest.first, false);
    } else if (what == 9) {
      while (const Range oldest = table.take_oldest_ready(kGranules)) table.give_back(oldest.first, false);
      std::fill(ready.begin(), ready.end(), false);
      table.hold_free();
      for (const auto& [first, size] : shadow) {
        units(first, size, [&](std::uint32_t unit) { holds[unit] = true; });
      }
    } else if (!shadow.empty() && what < 7) {
      const auto block = any();
      REQUIRE(table.block(block->first).granules == block->second);
      if (block->second > 1) REQUIRE_FALSE(table.block(block->first + 1));
      const auto [first, size] = *block;
      shadow.erase(block);
      give_back(first, size, chance(2) == 0);
      REQUIRE_FALSE(table.block(first));
    } else if (!shadow.empty() && what == 7) {
      const auto block = any();
      if (holds[block->first / kUnit]) continue;
      if (const Range added = table.extend(block->first, granules)) {
        REQUIRE(added.first == block->first + block->second);
        REQUIRE(added.granules <= granules);
        take(added);
        block->second += added.granules;
      }
    } else if (!shadow.empty()) {
      const auto block = any();
      if (block->second == 1) continue;
      const std::uint32_t left = block->second / 2;
      const Range rest = table.split(block->first, left);
      REQUIRE(rest.first == block->first + left);
      REQUIRE(rest.granules == block->second - left);
      block->second = left;
      give_back(rest.first, rest.granules, chance(2) == 0);
    }
  }
  std::map<std::uint32_t, std::uint32_t> found;
  table.for_each_block([&](Range block) { found[block.first] = block.granules; });
  CHECK(found == shadow);
  CHECK(table.ready() == static_cast<std::uint32_t>(std::count(ready.begin(), ready.end(), true)));
  while (!shadow.empty()) {
    const auto [first, size] = *any();
    shadow.erase(first);
    give_back(first, size, false);
  }
  while (const Range oldest = table.take_oldest_ready(7)) table.give_back(oldest.first, false);
  CHECK(table.take(kGranules - 1, 1).first == 1);
}

TEST_CASE("a table is full at its last granule") {
  // The entry behind those of the table looks like a free range, or like a block.
  for (const std::uint32_t behind : {8U, 11U}) {
    CAPTURE(behind);
    std::vector<BlockTable::Entry> entries(65);
    entries[64].tag = behind;
    BlockTable table(entries.data(), 64, 64);
    CHECK_FALSE(table.take(0, 1));
    CHECK_FALSE(table.take(64, 1));
    CHECK_FALSE(table.take(0xffffffff, 2));
    const Range first = table.take(59, 1);
    CHECK_FALSE(table.take(5, 1));
    CHECK_FALSE(table.extend(first.first, 5));
    CHECK(table.extend(first.first, 4).first == 60);
    const Range last = table.split(first.first, 59);
    CHECK_FALSE(table.take(1, 1));
    CHECK_FALSE(table.extend(last.first, 1));
    CHECK_FALSE(table.block(64));
    std::array<Range, 1> found;
    CHECK(table.blocks_from(1, found) == 1);
    table.give_back(last.first, false);
    CHECK(table.take(4, 1).first == 60);
    table.give_back(last.first, true);
    table.give_back(first.first, true);
    CHECK(table.ready() == 63);
    CHECK(entries[64].tag == behind);
  }
}

TEST_CASE("processes have places until these are all taken, and keep theirs") {
  const auto tree = std::make_unique<TreeUse>();
  for (std::int32_t process = 1; process <= 4096; ++process) {
    REQUIRE(tree->place_of(process) == &tree->places[static_cast<std::size_t>(process) - 1]);
  }
  for (int i = 0; i < 2; ++i) CHECK(tree->place_of(4097) == nullptr);
  CHECK(tree->place_of(1) == &tree->places[0]);
  CHECK(tree->processes.load() == 4098);
  const ProcessUse& use = tree->places[4095];
  CHECK(use.process.load() == 4096);
  CHECK(use.refused.load() == 0);
  for (const auto* const count : {&use.blocks, &use.live, &use.peak, &use.paged_out})
    CHECK(count->load() == 0);
}

/// Opens a heap of its own, in /var/tmp, which is seldom in memory.
std::unique_ptr<Heap> open_heap(std::uint64_t limit = 0) {
  auto heap = std::make_unique<Heap>();
  const SpillError failed = heap->open({"/var/tmp", limit});
  REQUIRE_MESSAGE(!failed, failed.code);
  return heap;
}

unsigned char* allocate(Heap& heap, std::size_t size, bool zeroed = false, std::size_t alignment = 16) {
  return static_cast<unsigned char*>(heap.allocate(size, alignment, zeroed));
}

unsigned char* filled(Heap& heap, std::size_t size, int value) {
  unsigned char* const block = allocate(heap, size);
  std::memset(block, value, size);
  return block;
}

TEST_CASE("a block is aligned, as large as it was asked for, and zeros where these were asked for") {
  const auto heap = open_heap();
  for (const std::size_t alignment : {std::size_t{16}, std::size_t{4096}, 2 * kMiB, 64 * kMiB}) {
    unsigned char* const block = allocate(*heap, 3 * kMiB + 5, false, alignment);
    REQUIRE(block != nullptr);
    CHECK(reinterpret_cast<std::uintptr_t>(block) % alignment == 0);
    CHECK(heap->usable_size(block) >= 3 * kMiB + 5);
    std::memset(block, 0xff, heap->usable_size(block));
    heap->release(block);
    // This may be the same block.
    unsigned char* const zeros = allocate(*heap, 3 * kMiB + 5, true, alignment);
    CHECK(std::all_of(zeros, zeros + 3 * kMiB + 5, [](unsigned char byte) { return byte == 0; }));
    heap->release(zeros);
  }
  CHECK(heap->use().live.load() == 0);
  CHECK(heap->use().blocks.load() == 8);
}

/// Returns whether most pages behind it are in memory. A few may be in any case: the kernel has them in
/// groups.
bool is_in_memory(unsigned char* block, std::size_t size) {
  std::vector<unsigned char> pages(size / page_size());
  REQUIRE(::mincore(block, size, pages.data()) == 0);
  const auto count =
      std::count_if(pages.begin(), pages.end(), [](unsigned char page) { return (page & 1) != 0; });
  return static_cast<std::size_t>(count) > pages.size() / 2;
}

TEST_CASE("blocks of more than half of the addresses, or aligned to more than 1 GiB, are not served") {
  const auto heap = open_heap();
  constexpr std::size_t kGiB = std::size_t{1} << 30;
  std::size_t half = 512 * kGiB;
  while (!heap->serves(half, 16)) half /= 2;  // where there are fewer addresses
  CHECK_FALSE(heap->serves(half + 1, 16));
  CHECK(heap->serves(kMiB, kGiB));
  CHECK_FALSE(heap->serves(kMiB, 2 * kGiB));
  CHECK_FALSE(heap->serves(kMiB, 48));
  CHECK_FALSE(Heap().serves(0, 16));
  unsigned char* const block = allocate(*heap, kMiB + 1, false, kGiB);
  CHECK(reinterpret_cast<std::uintptr_t>(block) % kGiB == 0);
  CHECK(heap->usable_size(block) == kMiB + kGranule);
  heap->release(block);
  CHECK(heap->use().refused.load() == 0);
  errno = 0;
  CHECK(allocate(*heap, 2048 * kGiB) == nullptr);
  CHECK(errno == EBADF);
  CHECK(heap->use().refused.load() == 0);
}

TEST_CASE("freed blocks keep their room for the next ones, unless that is not wanted") {
  const auto heap = open_heap();
  unsigned char* const block = filled(*heap, 8 * kMiB, 1);
  heap->release(block);
  unsigned char* const part = allocate(*heap, 3 * kMiB);
  CHECK(part == block);
  CHECK(part[0] == 1);
  unsigned char* const zeros = allocate(*heap, 5 * kMiB, true);
  CHECK(zeros == block + 3 * kMiB);
  CHECK(std::all_of(zeros, zeros + 5 * kMiB, [](unsigned char byte) { return byte == 0; }));
  heap->release(part);
  heap->release(zeros);
  heap->keep_freed(false);
  CHECK_FALSE(is_in_memory(block, 8 * kMiB));
  CHECK_FALSE(is_in_memory(block + 8 * kMiB - kGranule, kGranule));
  unsigned char* small = allocate(*heap, kGranule);
  std::memset(small, 1, kGranule);
  CHECK(is_in_memory(small, kGranule));
  heap->release(small);
  CHECK_FALSE(is_in_memory(small, kGranule));
  heap->keep_freed(true);
  // Room for others behind it is reserved ahead.
  small = allocate(*heap, kGranule);
  std::memset(small, 1, kGranule);
  heap->release(small);
  heap->keep_freed(false);
  CHECK_FALSE(is_in_memory(small, kGranule));
}

TEST_CASE("freed blocks keep an eighth of the limit and no more") {
  const auto heap = open_heap(64 * kMiB);
  std::vector<unsigned char*> blocks(8);
  for (unsigned char*& block : blocks) std::memset(block = allocate(*heap, 4 * kMiB), 1, 4 * kMiB);
  for (unsigned char* const block : blocks) heap->release(block);
  const auto kept = std::count_if(blocks.begin(), blocks.end(),
                                  [](unsigned char* block) { return is_in_memory(block, 4 * kMiB); });
  CHECK(kept == 2);
  // Other blocks were freed after it.
  CHECK_FALSE(is_in_memory(blocks.front(), 4 * kMiB));
}

TEST_CASE("a block that is resized keeps what it holds") {
  const auto heap = open_heap();
  unsigned char* const block = filled(*heap, 4 * kMiB, 1);
  REQUIRE(heap->resize(block, 40 * kMiB));
  CHECK(heap->usable_size(block) == 40 * kMiB);
  CHECK(block[4 * kMiB - 1] == 1);
  block[40 * kMiB - 1] = 2;
  unsigned char* const behind = allocate(*heap, kMiB);
  CHECK_FALSE(heap->resize(block, 80 * kMiB));
  CHECK(heap->usable_size(block) == 40 * kMiB);
  REQUIRE(heap->resize(block, 2 * kMiB));
  CHECK(block[2 * kMiB - 1] == 1);
  CHECK(heap->use().live.load() == 3 * kMiB);
  // The block grows over the part behind it that was freed as ready, and over the part behind that which was
  // never in use.
  heap->release(behind);
  REQUIRE(heap->resize(block, 60 * kMiB));
  std::memset(block, 3, 60 * kMiB);
  CHECK(heap->use().live.load() == 60 * kMiB);
  heap->release(block);
}

TEST_CASE("pages that are let go of are read again") {
  const auto heap = open_heap();
  unsigned char* const block = allocate(*heap, 64 * kMiB);
  for (std::size_t at = 0; at < 64 * kMiB; ++at) block[at] = static_cast<unsigned char>(at >> 12);
  CHECK(heap->resident_bytes() > 60 * kMiB);
  CHECK(heap->page_out(64 * kMiB) > 32 * kMiB);
  CHECK(heap->resident_bytes() < 16 * kMiB);
  bool is_same = true;
  for (std::size_t at = 0; at < 64 * kMiB; at += 4096)
    is_same &= block[at] == static_cast<unsigned char>(at >> 12);
  CHECK(is_same);
  CHECK(heap->page_out(64 * kMiB) > 32 * kMiB);
  CHECK(heap->page_out(64 * kMiB) % page_size() == 0);  // few or none are left
  heap->release(block);
}

TEST_CASE("pages of small blocks are the last to be let go of") {
  const auto heap = open_heap();
  std::vector<unsigned char*> blocks{allocate(*heap, kMiB), allocate(*heap, 32 * kMiB)};
  while (blocks.size() < 33) blocks.push_back(allocate(*heap, kMiB));
  for (unsigned char* const block : blocks) std::memset(block, 1, heap->usable_size(block));
  CHECK(heap->page_out(24 * kMiB) >= 24 * kMiB);
  const std::uint64_t left = heap->resident_bytes();
  CHECK(left >= 32 * kMiB);
  CHECK(heap->page_out(left) > 24 * kMiB);
  CHECK(heap->resident_bytes() < 16 * kMiB);
  for (unsigned char* const block : blocks) heap->release(block);
}

TEST_CASE("pages of all small blocks count, however many there are") {
  const auto heap = open_heap();
  std::vector<unsigned char*> blocks(129);
  for (unsigned char*& block : blocks) std::memset(block = allocate(*heap, kGranule), 1, kGranule);
  CHECK(heap->resident_bytes() == 129 * kGranule);
  for (unsigned char* const block : blocks) heap->release(block);
}

/// Returns the child's exit code.
template <class Child>
int in_child(Heap& heap, Child child) {
  heap.before_fork();
  const ::pid_t process = ::fork();
  if (process == 0) {
    heap.after_fork_in_child();
    ::_exit(child());
  }
  heap.after_fork_in_parent();
  int status = 0;
  REQUIRE(::waitpid(process, &status, 0) == process);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_CASE("a fork before the heap is open does not keep later ones waiting") {
  Heap heap;
  heap.before_fork();
  heap.after_fork_in_parent();
  heap.after_fork_in_child();
  REQUIRE_FALSE(heap.open({"/var/tmp", 0}));
  CHECK(in_child(heap, [] { return 0; }) == 0);
}

TEST_CASE("after a fork parent and child each have their own") {
  const auto heap = open_heap();
  unsigned char* const block = allocate(*heap, 8 * kMiB);
  unsigned char* const freed = allocate(*heap, 8 * kMiB);
  heap->release(allocate(*heap, 8 * kMiB));
  std::memset(block, 1, 8 * kMiB);
  std::memset(freed, 2, 8 * kMiB);
  CHECK(heap->use().peak.load() == 24 * kMiB);
  const int exit_code = in_child(*heap, [&] {
    const auto& use = heap->use();
    if (use.blocks.load() != 0 || use.live.load() != 16 * kMiB || use.peak.load() != 16 * kMiB) return 2;
    if (use.paged_out.load() != 0 || use.refused.load() != 0) return 2;
    const bool is_seen = block[0] == 1 && freed[8 * kMiB - 1] == 2;
    std::memset(block, 3, 8 * kMiB);
    heap->release(freed);
    unsigned char* const more = allocate(*heap, 8 * kMiB, true);
    const bool is_zero = more[0] == 0 && more[8 * kMiB - 1] == 0;
    std::memset(more, 4, 8 * kMiB);
    heap->release(more);
    return is_seen && is_zero ? 0 : 1;
  });
  CHECK(exit_code == 0);
  CHECK(block[0] == 1);
  CHECK(block[8 * kMiB - 1] == 1);
  CHECK(freed[8 * kMiB - 1] == 2);
  heap->release(freed);
  unsigned char* const more = filled(*heap, 8 * kMiB, 5);
  CHECK(in_child(*heap, [&] { return block[0] == 1 && more[0] == 5 ? 0 : 1; }) == 0);
  heap->release(more);
  heap->release(block);
}

TEST_CASE("blocks stay private copies where a heap is opened again, and new ones go to a new file") {
  const auto heap = open_heap();
  unsigned char* const block = allocate(*heap, 8 * kMiB);
  unsigned char* const freed = allocate(*heap, 8 * kMiB);
  unsigned char* const last = allocate(*heap, 8 * kMiB);
  std::memset(block, 1, 8 * kMiB);
  std::memset(last, 4, 8 * kMiB);
  heap->release(freed);
  CHECK(heap->reopen({"/no/such/folder", 0}).code == ENOENT);
  CHECK(heap->resident_bytes() > 0);
  REQUIRE_FALSE(heap->reopen({"/var/tmp", 0}));
  CHECK(heap->resident_bytes() == 0);
  CHECK_FALSE(heap->resize(block, 4 * kMiB));
  unsigned char* const more = filled(*heap, 8 * kMiB, 2);
  CHECK(in_child(*heap, [&] {
          block[0] = last[0] = 3;
          return more[0] == 2 ? 0 : 1;
        }) == 0);
  CHECK(block[0] == 1);
  CHECK(last[0] == 4);
  CHECK(heap->resident_bytes() == 0);  // copies are not the file's
  heap->release(last);
  heap->release(block);
  heap->release(more);
}

TEST_CASE("a child that came to be without the handlers of a fork has a file of its own for new blocks") {
  const auto heap = open_heap();
  unsigned char* const block = filled(*heap, 8 * kMiB, 1);
  const ::pid_t process = ::fork();
  if (process == 0) {
    unsigned char* const more = allocate(*heap, 40 * kMiB);
    std::memset(more, 9, 40 * kMiB);
    heap->release(block);
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(process, &status, 0) == process);
  CHECK(status == 0);
  CHECK(block[8 * kMiB - 1] == 1);
  unsigned char* const more = allocate(*heap, 40 * kMiB, true);
  CHECK(more[40 * kMiB - 1] == 0);
  heap->release(more);
  heap->release(block);
}

TEST_CASE("blocks of 1 MiB and more are told while they are in use") {
  const auto use = std::make_unique<ProcessUse>();
  const auto large = std::make_unique<LargeBlocks>();
  const auto heap = open_heap();
  unsigned char* const older = allocate(*heap, 2 * kMiB);
  // An earlier program of the process left these:
  use->blocks.store(1);
  large->add(::getpid(), 1 << 24, kMiB, 0);
  heap->report_to(*use, *large);
  CHECK(use->live.load() == 2 * kMiB);
  CHECK(use->peak.load() == 2 * kMiB);
  CHECK(
      std::ranges::all_of(large->places, [](const LargeBlock& place) { return place.address.load() == 0; }));
  const auto is_told = [&](const void* block) {
    return std::ranges::any_of(large->places, [&](const LargeBlock& place) {
      return place.address.load() == reinterpret_cast<std::uintptr_t>(block);
    });
  };
  unsigned char* const block = allocate(*heap, kMiB);
  unsigned char* const smaller = allocate(*heap, kMiB - kGranule);
  CHECK(is_told(block));
  CHECK_FALSE(is_told(smaller));
  heap->release(block);
  CHECK_FALSE(is_told(block));
  heap->release(smaller);
  heap->release(older);
}

TEST_CASE("a part of the file that was emptied is zeros, whether or not the file system can make holes") {
  for (const bool can : {true, false}) {
    CAPTURE(can);
    SpillFile file;
    REQUIRE_FALSE(file.open("/var/tmp", 4 * kMiB));
    void* const reserved = ::mmap(nullptr, kMiB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(reserved != MAP_FAILED);
    const FilePart part{static_cast<std::byte*>(reserved), 2 * kMiB, kMiB};
    REQUIRE(file.map(part, true) == 0);
    std::memset(part.address, 1, part.size);
    testing::no_holes_error = can ? 0 : EOPNOTSUPP;
    file.empty(part);
    testing::no_holes_error = 0;
    CHECK(std::all_of(part.address, part.address + part.size,
                      [](std::byte byte) { return byte == std::byte{0}; }));
    REQUIRE(::munmap(reserved, kMiB) == 0);
    file.close();
  }
}

TEST_CASE("a file has one descriptor, until it is closed") {
  using std::filesystem::directory_iterator;
  const auto descriptors = [] { return std::distance(directory_iterator("/proc/self/fd"), {}); };
  const auto before = descriptors();
  SpillFile file;
  REQUIRE_FALSE(file.open("/var/tmp", kMiB));
  CHECK(descriptors() == before + 1);
  file.close();
  CHECK(descriptors() == before);
  const auto heap = open_heap();
  CHECK(descriptors() == before + 1);
  REQUIRE_FALSE(heap->reopen({"/var/tmp", 0}));
  CHECK(descriptors() == before);  // until there is a block
}

TEST_CASE("a heap that can't be opened leaves no addresses reserved") {
  const auto addresses = [] {
    std::uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    return pages * page_size();
  };
  const auto before = addresses();
  Heap heap;
  CHECK(heap.open({"/no/such/folder", 0}).code == ENOENT);
  CHECK_FALSE(heap.serves(kMiB, 16));
  CHECK(Heap::try_open("/no/such/folder"));
  CHECK_FALSE(Heap::try_open("/var/tmp"));
  CHECK(addresses() < before + 512 * kMiB);
}

TEST_CASE("a command is run out of core with sizes, a folder and a library that will do") {
  const TemporaryFolder folder;
  put_file(folder / "a:b", "");
  OutOfCoreUse use;
  const auto refusal = [&](const OutOfCoreOptions& options) {
    return error_of(run_out_of_core({"true"}, options, use));
  };
  CHECK(refusal({.limit = 1}) ==
        "kInvalidArgument: a limit of 1 byte: expected 1.0 MiB or more, or 0 for none");
  CHECK(refusal({.limit = kMiB - 1}) ==
        "kInvalidArgument: a limit of 1048575 bytes: expected 1.0 MiB or more, or 0 for none");
  CHECK(OutOfCoreOptions().from == kDefaultFrom);
  CHECK(refusal({.from = 16383}) ==
        "kInvalidArgument: blocks from 16383 bytes on: expected 16.0 KiB or more");
  CHECK(refusal({.spill_folder = "/no/such", .limit = kMiB}) == containing("kInvalidArgument: large blocks"));
  CHECK(refusal({.library = folder / "none", .spill_folder = "/var/tmp"}) ==
        containing("none', which serves the blocks"));
  CHECK(refusal({.library = folder / "a:b", .spill_folder = "/var/tmp"}) ==
        containing("a:b' has a space or a colon, which LD_PRELOAD can't have"));
  CHECK(error_of(run_out_of_core({}, {}, use)) == "kInvalidArgument: there is no command to run");
}

TEST_CASE("no thread watches a heap whose blocks are within its limit, or that has none") {
  using std::filesystem::directory_iterator;
  const auto threads = [] { return std::distance(directory_iterator("/proc/self/task"), {}); };
  const auto before = threads();
  for (const std::uint64_t limit : {std::uint64_t{0}, std::uint64_t{8 * kMiB}}) {
    const auto heap = open_heap(limit);
    unsigned char* const block = allocate(*heap, 4 * kMiB);
    CHECK(heap->resize(block, 8 * kMiB));
    CHECK(threads() == before);
    heap->release(block);
  }
}

TEST_CASE("blocks lie in $TMPDIR or /var/tmp if no folder is given") {
  const char* const set = std::getenv("TMPDIR");
  const std::string before = set != nullptr ? set : "";
  const std::string usual = std::filesystem::canonical("/var/tmp").string();
  ::unsetenv("TMPDIR");
  CHECK(spill_folder("").value() == usual);
  ::setenv("TMPDIR", "", 1);
  CHECK(spill_folder("").value() == usual);
  ::setenv("TMPDIR", "/", 1);
  CHECK(spill_folder("").value() == "/");
  CHECK(spill_folder("/var/tmp").value() == usual);
  ::setenv("TMPDIR", before.c_str(), 1);
  if (set == nullptr) ::unsetenv("TMPDIR");
}

TEST_CASE("zeros are zeros where a freed block was locked in memory") {
  const auto heap = open_heap();
  heap->keep_freed(false);
  unsigned char* const block = filled(*heap, kMiB, 1);
  REQUIRE(::mlock(block, 16 << 10) == 0);
  heap->release(block);
  unsigned char* const zeros = allocate(*heap, 2 * kMiB, true);
  CHECK(zeros == block);
  CHECK(std::all_of(zeros, zeros + 2 * kMiB, [](unsigned char byte) { return byte == 0; }));
  heap->release(zeros);
}

TEST_CASE("a file whose descriptor was closed is not gone on with, and no child has its blocks") {
  const auto heap = open_heap();
  unsigned char* const block = allocate(*heap, 8 * kMiB);
  heap->release(allocate(*heap, 4 * kMiB));  // and kept
  for (int descriptor = 200; descriptor < 600; ++descriptor) ::close(descriptor);
  unsigned char* const more = filled(*heap, 4 * kMiB, 7);
  block[0] = 1;
  CHECK(in_child(*heap, [] { return 0; }) == 125);
  CHECK(block[0] == 1);
  heap->release(block);
  CHECK(in_child(*heap, [&] { return more[4 * kMiB - 1] == 7 ? 0 : 1; }) == 0);
  heap->release(more);
}

}  // namespace
}  // namespace etstream::heap::heap_test
