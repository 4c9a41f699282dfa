// SPDX-License-Identifier: BSD-3-Clause
//
// The out-of-core heap: large blocks of memory that lie in a file without a name, mapped shared, so that they
// are the page cache's and not the process's own. A block has its room on the disk before it is handed out,
// so that a full disk is an error and never a signal.
//
// At a fork, a shared mapping stays shared with the child. So the existing blocks become private copies of
// the file, on both sides, which costs nothing until one is written to: such a page belongs to the process
// from then on. Freed parts of them take room on the disk until all blocks of that time are freed, in all
// processes. New blocks go to a new file of each process.
//
// The kernel limits the number of mappings of a process (vm.max_map_count). So each of at most 16,384 units
// of the address space has one mapping, whatever blocks are in it, and neighbours of one kind are one
// mapping. No new block is put between copies: a unit is used again when all blocks in it are freed.
//
// Any thread, and signal handlers, may call everything but open(). Nothing here allocates.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "memory/heap/block_table.h"
#include "memory/heap/spill_file.h"
#include "memory/heap/statistics_posix.h"

namespace etstream::heap {

/// The size in bytes of a granule. Blocks begin at multiples of it, and a BlockTable counts in it. Pages may
/// be smaller, not larger.
inline constexpr std::uint64_t kGranule = 16 << 10;
/// The smallest address space, in bytes, with which there is a heap.
inline constexpr std::uint64_t kSmallestSpan = 1ULL << 32;
struct HeapOptions {
  const char* folder = nullptr;  // on a disk; for as long as the heap is there
  std::uint64_t limit = 0;       // pages over it are written and dropped; 0: when the system wants to
};

/// The mapping of a unit.
enum class Unit : std::uint8_t {
  kNone,    // no blocks; a mapping that may be left of a former file is not used
  kShared,  // the present file, shared
  kLeft,    // kShared, for as long as the heap leaves its file
  kCopy,    // a private copy of a former file
  kLost,    // a former file, shared, as it can't be copied: no child may have it
};

class Heap {
 public:
  constexpr Heap() = default;
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  /// Reserves address space, and makes the file. To be called once.
  [[nodiscard]] SpillError open(const HeapOptions& options) noexcept;
  /// Returns why open() would fail in this process, or no error. Leaves nothing.
  [[nodiscard]] static SpillError try_open(const char* folder) noexcept;

  /// Puts new blocks into a file in another folder, and sets another limit. The existing blocks become
  /// private copies, as at a fork. Changes nothing if the folder can't hold them.
  [[nodiscard]] SpillError reopen(const HeapOptions& options) noexcept;

  /// Returns whether allocate() may be called for such a block. `alignment` is a power of two.
  [[nodiscard]] bool serves(std::size_t size, std::size_t alignment) const noexcept;
  /// Allocates a block, which is all zeros if `zeroed`. Returns null, with errno set to ENOMEM if there is no
  /// room, or to EBADF if the process can make no file (after a fork, or if it has changed its root or its
  /// user) or has no addresses or mappings left. The functions for all other blocks must serve such a block.
  [[nodiscard]] void* allocate(std::size_t size, std::size_t alignment, bool zeroed) noexcept;
  /// Returns whether an address lies in the heap.
  [[nodiscard]] bool owns(const void* address) const noexcept {
    return reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(base_) < span_;
  }
  /// Returns how many bytes of a block may be used.
  [[nodiscard]] std::size_t usable_size(const void* block) noexcept;
  /// Makes a block larger or smaller in its place, if that is possible.
  [[nodiscard]] bool resize(void* block, std::size_t size) noexcept;
  /// Frees a block. Ends the process with a message if no block begins there.
  void release(void* block) noexcept;

  /// Does for blocks of the heap what madvise() does for blocks in memory, and calls it for other addresses.
  /// The system would leave MADV_DONTNEED without effect in a file, refuse MADV_FREE, and take a block's room
  /// by MADV_REMOVE.
  [[nodiscard]] int madvise(void* address, std::size_t size, int advice) noexcept;

  /// Sets whether freed blocks keep their room for the next ones. They do at first; with false, all lose it.
  void keep_freed(bool keeps) noexcept;

  /// The three handlers of a fork.
  void before_fork() noexcept;
  void after_fork_in_parent() noexcept;
  void after_fork_in_child() noexcept;

  /// Sets the place for its counts, and the table for its large blocks from now on. Until then the counts are
  /// in a place of its own. Both last as long as the heap.
  void report_to(ProcessUse& use, LargeBlocks& large) noexcept;
  [[nodiscard]] const ProcessUse& use() const noexcept { return *use_; }
  /// Restarts the count of the most bytes that were in blocks at a time.
  void forget_peak() noexcept { use_->peak.store(use_->live.load()); }

  /// Returns how many bytes of the blocks this process has mapped in.
  [[nodiscard]] std::uint64_t resident_bytes() noexcept;
  /// Writes pages of blocks to the disk and drops them, the next ones in turn and those of small blocks last,
  /// until they are `bytes` or all. Returns how many bytes they were. One thread at a time.
  std::uint64_t page_out(std::uint64_t bytes) noexcept;

 private:
  class InUse;

  [[nodiscard]] std::byte* address_of(std::uint32_t granule) const noexcept;
  [[nodiscard]] std::uint32_t granule_of(const void* block) const noexcept;
  [[nodiscard]] FilePart part_of(Range range) const noexcept;
  /// Returns the block that begins at an address. Ends the process if there is none.
  [[nodiscard]] Range block_at(const void* block) noexcept;
  /// Returns whether this is the process that the heap was made for, and not a fork without the handlers.
  [[nodiscard]] bool is_own_process() const noexcept { return *mark_ != 0; }
  /// Returns whether this process has its own file, and its descriptor is intact.
  [[nodiscard]] bool has_file() const noexcept { return is_own_process() && file_.is_intact(); }
  [[nodiscard]] SpillError renew_file() noexcept;
  /// Returns whether all of a range is mapped shared, from this process's file.
  [[nodiscard]] bool is_shared(Range range) const noexcept;
  /// Calls `look(Unit, Range)` for each run of units with the same mapping that a range touches. The lock of
  /// the table is held, or a block of the caller's is in each unit.
  template <class Look>
  void for_each_run(Range range, Look look) const noexcept {
    std::uint32_t unit = range.first / granules_per_unit_;
    const std::uint32_t end = (range.first + range.granules + granules_per_unit_ - 1) / granules_per_unit_;
    while (unit < end) {
      const std::uint32_t first = unit;
      while (++unit < end && units_[unit] == units_[first]) {
      }
      look(units_[first], Range{first * granules_per_unit_, (unit - first) * granules_per_unit_});
    }
  }
  void set_units(Range run, Unit unit) noexcept;
  [[nodiscard]] int map_units(Range range) noexcept;
  /// Takes a block with room on the disk. Returns 0, or errno's value: EBADF as allocate() does. `fresh` is
  /// as in back(); other parts of the block may have other blocks' bytes.
  [[nodiscard]] int take_block(std::uint32_t granules, std::uint32_t alignment, Range& block,
                               Range& fresh) noexcept;
  /// Gets room for all of a range. Returns 0, or errno's value. `fresh` becomes the groups of pages that had
  /// no room before, which are zeros; they may be larger.
  [[nodiscard]] int back(Range range, Range& fresh) noexcept;
  [[nodiscard]] int back_with_more(Range range, Range& fresh) noexcept;
  [[nodiscard]] int take_room(Range range, Range& fresh) noexcept;
  bool empty(Range range) noexcept;
  [[nodiscard]] std::uint32_t most_ready() const noexcept;
  /// Takes their room from the ranges that were ready first, until at most `most_left` granules are ready.
  void empty_ready(std::uint32_t most_left = 0) noexcept;
  [[nodiscard]] int discard(void* address, std::size_t size) noexcept;
  [[nodiscard]] Range take_oldest_ready(std::uint32_t most_left) noexcept;
  /// Frees room on the disk that ready ranges keep. Returns false if they keep none.
  [[nodiscard]] bool free_room() noexcept;
  void give_back(Range range) noexcept;
  bool give_back_empty(Range range) noexcept;
  void unmap(Range run) noexcept;
  void leave_file() noexcept;
  /// Notes in the shared table that a block has come, or has gone.
  void note_block(Range block) noexcept;
  void forget_block(Range block) noexcept;
  void refuse(int reason, std::size_t size) noexcept;
  void say_stay(const char* why, const char* reason) noexcept;
  /// Calls `look` with the blocks that begin at `first` or later, until it returns false. The heap is not
  /// locked during the call. Blocks that are not shared have no granules.
  template <class Look>
  void for_each_shared_block(std::uint32_t first, Look look) noexcept;
  std::uint64_t let_go_of(Range block) noexcept;
  /// Does the same as page_out() for blocks of so many granules.
  std::uint64_t page_out_blocks(std::uint64_t bytes, std::uint32_t fewest, std::uint32_t most) noexcept;
  void watch_limit() noexcept;
  [[noreturn]] void keep_to_limit() noexcept;

  std::byte* base_ = nullptr;
  std::uint64_t span_ = 0;
  HeapOptions options_;
  std::atomic<std::uint64_t> limit_{0};  // that of options_
  // Each user of the heap holds this lock shared, and a fork holds it alone.
  pthread_rwlock_t uses_ = PTHREAD_RWLOCK_INITIALIZER;
  std::atomic<pthread_t> forking_{};
  // This lock guards the table and what follows it.
  pthread_mutex_t lock_ = PTHREAD_MUTEX_INITIALIZER;
  BlockTable table_;
  Unit* units_ = nullptr;
  std::uint32_t granules_per_unit_ = 1;
  const char* lost_because_ = nullptr;  // the reason for the last kLost
  // This lock guards the counts of room in the file. The file gets and loses room under it.
  pthread_mutex_t room_lock_ = PTHREAD_MUTEX_INITIALIZER;
  GroupUse room_;
  // These change only while nobody else uses the heap.
  SpillFile file_;
  volatile char* mark_ = nullptr;  // in memory that is zeros in a forked child
  std::uint64_t live_at_fork_ = 0;

  std::atomic<bool> keeps_freed_{true};
  std::atomic<bool> has_refused_{false};
  std::atomic<bool> has_said_stay_{false};
  std::atomic<bool> is_watched_{false};
  std::uint32_t hand_ = 1;  // the block whose pages are let go of next begins there or after
  ProcessUse own_use_;
  ProcessUse* use_ = &own_use_;
  LargeBlocks* large_ = nullptr;  // null if no process above wants to know
};

/// Blocks signal handlers, which may allocate, during code that must not be entered twice, and prevents
/// cancellation of the thread in the middle of it.
class SignalsBlocked {
 public:
  SignalsBlocked() noexcept {
    ::sigset_t all;
    sigfillset(&all);
    for (const int of_the_thread : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP}) {
      sigdelset(&all, of_the_thread);
    }
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
    ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_before_);
  }
  ~SignalsBlocked() {
    ::pthread_setcancelstate(cancel_before_, nullptr);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  ::sigset_t before_{};
  int cancel_before_ = 0;
};

/// Uses the heap, and restores errno at the end. `alone` waits until nobody else uses it.
class Heap::InUse {
 public:
  explicit InUse(Heap& heap, bool alone = false) noexcept
      : heap_(heap), in_fork_(heap.forking_.load() == ::pthread_self()) {
    if (in_fork_) return;  // a handler of somebody else's, who has it locked
    alone ? ::pthread_rwlock_wrlock(&heap.uses_) : ::pthread_rwlock_rdlock(&heap.uses_);
  }
  ~InUse() {
    if (!in_fork_) ::pthread_rwlock_unlock(&heap_.uses_);
    errno = errno_;
  }
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;

 private:
  int errno_ = errno;
  SignalsBlocked signals_;
  Heap& heap_;
  bool in_fork_;
};

/// std::lock_guard would need the C++ library.
class Locked {
 public:
  explicit Locked(::pthread_mutex_t& lock) noexcept : lock_(lock) { ::pthread_mutex_lock(&lock_); }
  ~Locked() { ::pthread_mutex_unlock(&lock_); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  ::pthread_mutex_t& lock_;
};

// Sentences on standard error, from code that must not allocate.

/// Returns the message for a value of errno.
[[nodiscard]] const char* reason_of(int code) noexcept;

/// Writes to standard error.
void write_error(std::string_view text) noexcept;

/// A line of words and numbers, cut after 512 bytes.
class Line {
 public:
  void add(std::string_view words) noexcept {
    const std::size_t taken = std::min(words.size(), text_.size() - size_);
    std::memcpy(text_.data() + size_, words.data(), taken);
    size_ += taken;
  }
  void add(std::uint64_t number) noexcept {
    std::array<char, 20> digits{};
    std::size_t first = digits.size();
    do digits[--first] = static_cast<char>('0' + number % 10);
    while ((number /= 10) != 0);
    add(std::string_view(digits.data() + first, digits.size() - first));
  }
  [[nodiscard]] std::string_view view() const noexcept { return {text_.data(), size_}; }

 private:
  std::array<char, 512> text_{};
  std::size_t size_ = 0;
};

/// Writes a line of the pieces, after "etstream: heap: ".
template <class... Pieces>
void say(const Pieces&... pieces) noexcept {
  Line line;
  line.add("etstream: heap: ");
  (line.add(pieces), ...);
  line.add("\n");
  write_error(line.view());
}

}  // namespace etstream::heap
