// SPDX-License-Identifier: BSD-3-Clause
//
// The heap's blocks; then the effects of a fork, or of a lost file, on them and on the file; then the limit:
// a thread checks how much of the heap is mapped in, and drops the pages over the limit. It is started when
// the blocks together are larger than the limit.
#include "memory/heap/heap_posix.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <limits>
#include <utility>

namespace etstream::heap {
namespace {

/// The heap begins at a multiple of it.
constexpr std::uint64_t kLargestAlignment = 1ULL << 30;
constexpr std::uint64_t kLargestSpan = 1ULL << 40;
/// Freed blocks together keep room up to this size, or up to one part in eight of a limit.
constexpr std::uint64_t kMostReadyBytes = 512 << 20;
constexpr std::uint64_t kReadyPartOfLimit = 8;
/// The most units, so that their mappings are few beside those that the kernel allows, 65,530 by default.
constexpr std::uint64_t kMostUnits = 1 << 14;
/// The granules for which room is reserved ahead, for smaller blocks.
constexpr std::uint32_t kReadyAtOnce = (1 << 20) / kGranule;

std::uint32_t granules_for(std::size_t size) {
  return static_cast<std::uint32_t>((size + kGranule - 1) / kGranule);
}

/// Maps zeros, none of which takes memory until it is written to. Returns null with errno set if there is no
/// room.
std::byte* reserve_addresses(std::uint64_t size, int protection) {
  void* const at = ::mmap(nullptr, size, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at == MAP_FAILED ? nullptr : static_cast<std::byte*>(at);
}

std::uint32_t granules_per_group() {
  return static_cast<std::uint32_t>(std::max(largest_group(), kGranule) / kGranule);
}

/// The heap's part of the address space: room for the blocks, and the records of them.
struct Reservation {
  std::uint64_t span = 0;
  std::byte* addresses = nullptr;  // for the span, which is to be aligned
  // The records: the page of the mark, the entries of the table, the counts of the groups, and the units.
  std::byte* records = nullptr;
  std::uint64_t entries_at = 0;
  std::uint64_t counts_at = 0;
  std::uint64_t units_at = 0;
  std::uint64_t records_size = 0;

  explicit Reservation(std::uint64_t wanted)
      : span(wanted),
        entries_at(page_size()),
        counts_at(entries_at + granules() * sizeof(BlockTable::Entry)),
        units_at(counts_at + granules() / granules_per_group() * sizeof(std::uint16_t)),
        records_size(units_at + granules() / granules_per_unit() * sizeof(Unit)) {}

  [[nodiscard]] std::uint32_t granules() const { return static_cast<std::uint32_t>(span / kGranule); }
  /// All groups of pages lie within units.
  [[nodiscard]] std::uint32_t granules_per_unit() const {
    return std::max(static_cast<std::uint32_t>(span / kMostUnits / kGranule), granules_per_group());
  }
  [[nodiscard]] std::uint64_t addresses_size() const { return span + kLargestAlignment; }
  void give_back() noexcept {
    if (records != nullptr) ::munmap(records, records_size);
    if (addresses != nullptr) ::munmap(addresses, addresses_size());
    records = addresses = nullptr;
  }
};

/// Returns the limit of this kind; a limit without a name if none is set.
LowLimit limit_of(int kind, const char* name, std::uint64_t needed) {
  ::rlimit found{};
  if (::getrlimit(kind, &found) != 0 || found.rlim_cur == RLIM_INFINITY) return {};
  return {name, found.rlim_cur, needed};
}

/// Reserves as many addresses as there is room for, up to the largest span.
SpillError reserve(Reservation& out) {
  if (page_size() > kGranule) return {EOPNOTSUPP, "pages of this system are larger than 16 KiB"};
  for (std::uint64_t span = kLargestSpan; span >= kSmallestSpan; span /= 2) {
    out = Reservation(span);
    out.addresses = reserve_addresses(out.addresses_size(), PROT_NONE);
    if (out.addresses == nullptr) continue;
    out.records = reserve_addresses(out.records_size, PROT_READ | PROT_WRITE);
    if (out.records != nullptr) return {};
    out.give_back();
    const LowLimit data = limit_of(RLIMIT_DATA, "ulimit -d", out.records_size);
    if (data.name != nullptr) return {ENOMEM, "there is too little room for data", data};
  }
  return {ENOMEM, "there is too little address space",
          limit_of(RLIMIT_AS, "ulimit -v", out.addresses_size() + out.records_size)};
}

/// Fills a block that begins with granule `first` with zeros, except in `fresh`, which are zeros already, and
/// may be none.
void clear(void* block, std::size_t size, std::uint32_t first, Range fresh) {
  const auto offset_of = [&](std::uint32_t granule) {
    return granule <= first ? 0 : std::min<std::uint64_t>(size, (granule - first) * kGranule);
  };
  const std::uint64_t begin = offset_of(fresh.first);
  const std::uint64_t end = offset_of(fresh.first + fresh.granules);
  std::memset(block, 0, begin);
  std::memset(static_cast<std::byte*>(block) + end, 0, size - end);
}

}  // namespace

SpillError Heap::open(const HeapOptions& options) noexcept {
  options_ = options;
  limit_.store(options.limit);
  Reservation reserved(kSmallestSpan);
  SpillError failed = reserve(reserved);
  if (failed) return failed;
  failed.code = wipe_in_children(reserved.records);
  if (!failed) failed = file_.open(options.folder, reserved.span);
  if (failed) {
    reserved.give_back();
    return failed;
  }
  table_ = BlockTable(reinterpret_cast<BlockTable::Entry*>(reserved.records + reserved.entries_at),
                      reserved.granules(), reserved.granules_per_unit());
  units_ = reinterpret_cast<Unit*>(reserved.records + reserved.units_at);
  granules_per_unit_ = reserved.granules_per_unit();
  room_ =
      GroupUse(reinterpret_cast<std::uint16_t*>(reserved.records + reserved.counts_at), granules_per_group());
  mark_ = reinterpret_cast<volatile char*>(reserved.records);
  *mark_ = 1;
  const auto address = reinterpret_cast<std::uintptr_t>(reserved.addresses);
  const std::uintptr_t aligned = (address + kLargestAlignment - 1) & ~(kLargestAlignment - 1);
  base_ = reserved.addresses + (aligned - address);
  span_ = reserved.span;
  return {};
}

SpillError Heap::try_open(const char* folder) noexcept {
  Reservation reserved(kSmallestSpan);
  if (const SpillError failed = reserve(reserved)) return failed;
  SpillFile attempt;
  const SpillError failed = attempt.open(folder, reserved.span);
  attempt.close();
  reserved.give_back();
  return failed;
}

SpillError Heap::reopen(const HeapOptions& options) noexcept {
  SpillFile attempt;
  const SpillError failed = attempt.open(options.folder, span_);
  attempt.close();
  if (failed) return failed;
  const InUse alone(*this, true);
  leave_file();
  // The next allocation makes the new file.
  options_ = options;
  limit_.store(options.limit);
  return {};
}

std::byte* Heap::address_of(std::uint32_t granule) const noexcept { return base_ + granule * kGranule; }

FilePart Heap::part_of(Range range) const noexcept {
  return {address_of(range.first), static_cast<std::int64_t>(range.first * kGranule),
          range.granules * kGranule};
}

std::uint32_t Heap::granule_of(const void* block) const noexcept {
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(static_cast<const std::byte*>(block) - base_) /
                                    kGranule);
}

Range Heap::block_at(const void* block) noexcept {
  const std::uint32_t first = granule_of(block);
  Range found;
  if (address_of(first) == block) {
    const Locked locked(lock_);
    found = table_.block(first);
  }
  if (!found) {
    say("a pointer that is freed, resized or asked for its size is not the beginning of a block");
    ::abort();
  }
  return found;
}

bool Heap::serves(std::size_t size, std::size_t alignment) const noexcept {
  return span_ != 0 && size <= span_ / 2 && std::has_single_bit(alignment) &&
         alignment <= kLargestAlignment && forking_.load() != ::pthread_self();
}

bool Heap::is_shared(Range range) const noexcept {
  bool is_shared = is_own_process();
  for_each_run(range, [&](Unit unit, Range) { is_shared &= unit == Unit::kShared; });
  return is_shared;
}

void Heap::set_units(Range run, Unit unit) noexcept {
  std::fill_n(units_ + run.first / granules_per_unit_, run.granules / granules_per_unit_, unit);
}

void Heap::refuse(int reason, std::size_t size) noexcept {
  use_->refused.fetch_add(1, std::memory_order_relaxed);
  if (!has_refused_.exchange(true)) {
    say("no room for a block of ", size, " bytes in ", options_.folder, ": ", reason_of(reason));
  }
}

void Heap::say_stay(const char* why, const char* reason) noexcept {
  if (has_said_stay_.exchange(true)) return;
  say("large blocks of process ", static_cast<std::uint64_t>(::getpid()), " stay in memory, as ", why,
      options_.folder, ": ", reason);
}

/// Leaves the addresses of units reserved, with nothing behind them.
void Heap::unmap(Range run) noexcept {
  const FilePart part = part_of(run);
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  static_cast<void>(::mmap(part.address, part.size, PROT_NONE, flags, -1, 0));
  set_units(run, Unit::kNone);
}

/// Maps the units that a range touches, unless they are mapped. Returns 0, or EBADF.
int Heap::map_units(Range range) noexcept {
  const Locked locked(lock_);
  int failed = 0;
  for_each_run(range, [&](Unit unit, Range run) {
    if (unit != Unit::kNone || failed != 0) return;
    failed = file_.map(part_of(run), true) == 0 ? 0 : EBADF;
    if (failed == 0) set_units(run, Unit::kShared);
  });
  return failed;
}

int Heap::back(Range range, Range& fresh) noexcept {
  int failed = map_units(range);
  if (failed != 0) return failed;
  do {
    failed = take_room(range, fresh);
  } while ((failed == ENOSPC || failed == EDQUOT) && free_room());
  return failed;
}

int Heap::take_room(Range range, Range& fresh) noexcept {
  const Locked locked(room_lock_);
  fresh = room_.take(range);
  if (fresh.granules == 0) return 0;
  const int failed = file_.reserve(part_of(fresh));
  if (failed != 0) {
    static_cast<void>(room_.give_back(range));
    file_.empty(part_of(fresh));  // a piece of it may have been reserved
  }
  return failed;
}

/// Takes its room from a range: groups of pages with nothing else in them lose theirs. Returns whether any
/// did.
bool Heap::empty(Range range) noexcept {
  const Locked locked(room_lock_);
  const Range gone = room_.give_back(range);
  if (gone.granules == 0) return false;
  file_.empty(part_of(gone));
  return true;
}

void* Heap::allocate(std::size_t size, std::size_t alignment, bool zeroed) noexcept {
  const std::uint32_t granules = granules_for(size);
  const auto aligned = static_cast<std::uint32_t>(std::max<std::uint64_t>(alignment, kGranule) / kGranule);
  int failed = 0;
  while (failed == 0) {
    {
      const InUse use(*this);
      if (has_file()) {
        Range block;
        Range fresh;
        failed = take_block(granules, aligned, block, fresh);
        if (failed == 0) {
          void* const address = address_of(block.first);
          if (zeroed) clear(address, size, block.first, fresh);
          use_->add(granules * kGranule);
          note_block({block.first, granules});
          watch_limit();
          return address;
        }
        if (failed == EBADF) {
          say_stay("no more can be mapped from the file in ", reason_of(ENOMEM));
        } else {
          refuse(failed, size);
        }
        continue;
      }
    }
    const SpillError error = renew_file();
    if (!error) continue;
    const InUse use(*this);
    const bool is_full = error.code == ENOSPC || error.code == EDQUOT;
    failed = is_full ? ENOMEM : EBADF;
    if (is_full) {
      refuse(error.code, size);
    } else {
      say_stay("no file can be made in ", error.reason != nullptr ? error.reason : reason_of(error.code));
    }
  }
  errno = failed == EBADF ? EBADF : ENOMEM;
  return nullptr;
}

int Heap::take_block(std::uint32_t granules, std::uint32_t alignment, Range& block, Range& fresh) noexcept {
  {
    const Locked locked(lock_);
    block = table_.take(granules, alignment);
  }
  if (!block) return EBADF;
  if (block.is_ready) return 0;
  const int failed = back_with_more(block, fresh);
  if (failed != 0) {
    const Locked locked(lock_);
    table_.give_back(block.first, false);
  }
  return failed;
}

/// Gets room for a block. As that takes long, it also gets room for granules behind a small block, which are
/// ready then.
int Heap::back_with_more(Range range, Range& fresh) noexcept {
  Range whole = range;
  {
    const Locked locked(lock_);
    const bool has_room = table_.ready() + kReadyAtOnce <= most_ready();
    const Range more = has_room && range.granules < kReadyAtOnce
                           ? table_.extend(range.first, kReadyAtOnce - range.granules)
                           : Range{};
    if (more.is_ready) {
      table_.give_back(table_.split(range.first, range.granules).first, true);
    } else {
      whole.granules += more.granules;
    }
  }
  const int failed = back(whole, fresh);
  if (whole.granules == range.granules) return failed;
  const bool is_ready = failed == 0;
  {
    const Locked locked(lock_);
    table_.give_back(table_.split(range.first, range.granules).first, is_ready);
  }
  return is_ready ? 0 : back(range, fresh);
}

std::size_t Heap::usable_size(const void* block) noexcept {
  const InUse use(*this);
  return block_at(block).granules * kGranule;
}

bool Heap::resize(void* block, std::size_t size) noexcept {
  const std::uint32_t granules = granules_for(size);
  const InUse use(*this);
  const Range range = block_at(block);
  if (size > span_ / 2 || !has_file() || !is_shared(range)) return false;
  const auto cut_to = [&](std::uint32_t first_ones) {
    Range rest;
    {
      const Locked locked(lock_);
      rest = table_.split(range.first, first_ones);
    }
    give_back(rest);
  };
  if (granules < range.granules) {
    use_->remove((range.granules - granules) * kGranule);
    forget_block(range);
    note_block({range.first, granules});
    cut_to(granules);
    return true;
  }
  for (std::uint32_t now = range.granules; now < granules;) {
    Range added;
    Range fresh;
    {
      const Locked locked(lock_);
      added = table_.extend(range.first, granules - now);
    }
    if (!added || (!added.is_ready && back(added, fresh) != 0)) {
      if (added) {
        const Locked locked(lock_);
        static_cast<void>(table_.split(range.first, now));
        table_.give_back(added.first, false);
      }
      if (now > range.granules) cut_to(range.granules);
      return false;
    }
    now += added.granules;
  }
  use_->grow((granules - range.granules) * kGranule);
  forget_block(range);
  note_block({range.first, granules});
  watch_limit();
  return true;
}

/// Returns the most granules that may be ready.
std::uint32_t Heap::most_ready() const noexcept {
  if (!keeps_freed_.load(std::memory_order_relaxed)) return 0;
  const std::uint64_t limit = limit_.load(std::memory_order_relaxed);
  const std::uint64_t bytes =
      limit == 0 ? kMostReadyBytes : std::min(kMostReadyBytes, limit / kReadyPartOfLimit);
  return static_cast<std::uint32_t>(bytes / kGranule);
}

Range Heap::take_oldest_ready(std::uint32_t most_left) noexcept {
  const Locked locked(lock_);
  if (table_.ready() <= most_left) return {};
  return table_.take_oldest_ready(table_.ready() - most_left);
}

void Heap::empty_ready(std::uint32_t most_left) noexcept {
  while (const Range oldest = take_oldest_ready(most_left)) give_back_empty(oldest);
}

bool Heap::free_room() noexcept {
  while (const Range oldest = take_oldest_ready(0)) {
    if (give_back_empty(oldest)) return true;
  }
  return false;
}

/// Frees a block, without its room. Returns whether that gave room back to the disk.
bool Heap::give_back_empty(Range range) noexcept {
  if (units_[range.first / granules_per_unit_] == Unit::kShared) {
    const bool is_freed = has_file() && empty(range);
    const Locked locked(lock_);
    table_.give_back(range.first, false);
    return is_freed;
  }
  // This is a copy from before a fork, whose written pages are memory of the process.
  drop_pages(part_of(range));
  const Locked locked(lock_);
  if (const Range whole = table_.hold(range.first)) {
    for_each_run(whole, [&](Unit, Range run) { unmap(run); });
    table_.give_back(whole.first, false);
  }
  return false;
}

/// Frees a block, with its room if it may keep that.
void Heap::give_back(Range range) noexcept {
  const std::uint32_t most = most_ready();
  if (range.granules > most || !is_shared(range)) {
    give_back_empty(range);
    return;
  }
  {
    const Locked locked(lock_);
    table_.give_back(range.first, true);
  }
  empty_ready(most);
}

void Heap::release(void* block) noexcept {
  const InUse use(*this);
  const Range range = block_at(block);
  use_->remove(range.granules * kGranule);
  forget_block(range);
  give_back(range);
}

int Heap::madvise(void* address, std::size_t size, int advice) noexcept {
  const bool is_dropped = advice == MADV_DONTNEED || advice == MADV_FREE;
  if (!owns(address) || (!is_dropped && advice != MADV_REMOVE)) return advise(address, size, advice);
  const int failed = is_dropped ? discard(address, size) : EINVAL;
  if (failed == 0) return 0;
  errno = failed;
  return -1;
}

/// Makes pages of blocks zeros, and frees their memory where that is possible. Returns 0, or errno's value.
int Heap::discard(void* address, std::size_t size) noexcept {
  const std::uint64_t begin = static_cast<std::uint64_t>(static_cast<std::byte*>(address) - base_);
  const std::uint64_t page = page_size();
  if (begin % page != 0) return EINVAL;
  const std::uint64_t end = begin + (std::min(size, span_ - begin) + page - 1) / page * page;
  const InUse use(*this);
  const Locked locked(lock_);
  const auto first = static_cast<std::uint32_t>(begin / kGranule);
  const auto last = static_cast<std::uint32_t>((end + kGranule - 1) / kGranule);
  for_each_run({first, last - first}, [&](Unit unit, Range run) {
    const std::uint64_t from = std::max(begin, run.first * kGranule);
    const std::uint64_t size_of_part = std::min(end, (run.first + run.granules) * kGranule) - from;
    const FilePart part{base_ + from, static_cast<std::int64_t>(from), size_of_part};
    if (unit == Unit::kNone || (unit == Unit::kShared && has_file() && file_.clear(part))) return;
    std::memset(part.address, 0, part.size);
  });
  return 0;
}

void Heap::keep_freed(bool keeps) noexcept {
  keeps_freed_.store(keeps);
  const InUse use(*this);
  if (!keeps) empty_ready();
}

void Heap::note_block(Range block) noexcept {
  const std::uint64_t size = block.granules * kGranule;
  if (large_ == nullptr || size < LargeBlocks::kSmallest) return;
  ::timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const auto born =
      static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
  large_->add(::getpid(), reinterpret_cast<std::uintptr_t>(address_of(block.first)), size, born);
}

void Heap::forget_block(Range block) noexcept {
  if (large_ == nullptr || block.granules * kGranule < LargeBlocks::kSmallest) return;
  large_->remove(::getpid(), reinterpret_cast<std::uintptr_t>(address_of(block.first)));
}

void Heap::report_to(ProcessUse& use, LargeBlocks& large) noexcept {
  const InUse alone(*this, true);
  use.live.store(use_->live.load());
  use.peak.store(std::max(use.peak.load(), use.live.load()));
  use_ = &use;
  // An earlier program of the process may have left blocks in the table.
  if (use.blocks.load() != 0) large.remove_all(::getpid());
  large_ = &large;
}

/// The exit code of a child that has no copies of its parent's blocks; that of `etstream run` without a heap.
constexpr int kNoCopies = 125;

/// Leaves the file. Its blocks become private copies if they can. Units without a block are unmapped: their
/// mappings would keep the file, and its room on the disk, for as long as they exist.
void Heap::leave_file() noexcept {
  if (!file_.is_open()) return;
  empty_ready();
  const bool can_copy = has_file();
  table_.for_each_block([&](Range block) {
    for_each_run(block, [&](Unit unit, Range run) {
      if (unit == Unit::kShared) set_units(run, Unit::kLeft);
    });
  });
  table_.hold_free();
  for_each_run({0, table_.highest()}, [&](Unit unit, Range run) {
    if (unit == Unit::kShared) unmap(run);
    if (unit != Unit::kLeft) return;
    const int failed = can_copy ? file_.map(part_of(run), false) : EBADF;
    set_units(run, failed == 0 ? Unit::kCopy : Unit::kLost);
    if (failed != 0) lost_because_ = can_copy ? reason_of(failed) : "their file was closed";
  });
  file_.close();
}

/// Makes the first file after a fork. Also replaces a file whose descriptor was closed, or a file of another
/// process, if this one came to be without the handlers of a fork.
SpillError Heap::renew_file() noexcept {
  const InUse alone(*this, true);
  if (has_file()) return {};
  leave_file();
  *mark_ = 1;
  room_.clear(table_.highest());
  return file_.open(options_.folder, span_);
}

void Heap::before_fork() noexcept {
  if (span_ == 0) return;
  const SignalsBlocked signals;
  ::pthread_rwlock_wrlock(&uses_);
  forking_.store(::pthread_self());
  leave_file();
  live_at_fork_ = use_->live.load();
}

void Heap::after_fork_in_parent() noexcept {
  if (span_ == 0) return;
  const SignalsBlocked signals;
  forking_.store({});
  ::pthread_rwlock_unlock(&uses_);
}

void Heap::after_fork_in_child() noexcept {
  if (span_ == 0) return;
  for_each_run({0, table_.highest()}, [&](Unit unit, Range) {
    if (unit != Unit::kLost) return;
    say("process ", static_cast<std::uint64_t>(::getpid()), " ends as it begins: blocks of its parent in ",
        options_.folder, " can't be copied: ", lost_because_);
    ::_exit(kNoCopies);
  });
  *mark_ = 1;
  is_watched_.store(false);
  // The parent's place belongs to the parent.
  own_use_.live.store(live_at_fork_);
  own_use_.peak.store(live_at_fork_);
  own_use_.blocks.store(0);
  own_use_.paged_out.store(0);
  own_use_.refused.store(0);
  use_ = &own_use_;
  large_ = nullptr;
  // The child's thread has another number than the one that locked this.
  const ::pthread_rwlock_t unlocked = PTHREAD_RWLOCK_INITIALIZER;
  uses_ = unlocked;
  forking_.store({});
}

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

// strerror() may allocate, to translate the message.
const char* reason_of(int code) noexcept {
  static constexpr std::pair<int, const char*> kReasons[] = {
      {ENOSPC, "No space left on device"},
      {EDQUOT, "Disk quota exceeded"},
      {EFBIG, "File too large"},
      {EIO, "Input/output error"},
      {ENOMEM, "Cannot allocate memory"},
      {ENOENT, "No such file or directory"},
      {ENOTDIR, "Not a directory"},
      {EACCES, "Permission denied"},
      {EPERM, "Operation not permitted"},
      {EROFS, "Read-only file system"},
      {EMFILE, "Too many open files"},
      {ENFILE, "Too many open files in system"},
      {EOPNOTSUPP, "Operation not supported"},
  };
  for (const auto& [known, reason] : kReasons) {
    if (known == code) return reason;
  }
  return "an error of the operating system";
}

void write_error(std::string_view text) noexcept {
  static_cast<void>(!::write(STDERR_FILENO, text.data(), text.size()));
}

}  // namespace etstream::heap
