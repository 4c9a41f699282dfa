// SPDX-License-Identifier: BSD-3-Clause
#include "heap/heap_linux.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "heap/in_use_linux.h"
#include "heap/say.h"

namespace etstream::heap {
namespace {

/// Where the address space begins, so that any block may ask to begin at a multiple of less.
constexpr std::uint64_t kLargestAlignment = 1ULL << 30;
constexpr std::uint64_t kLargestSpan = 1ULL << 40;
/// Freed blocks are kept up to this size together; under a limit, up to a part of it.
constexpr std::uint64_t kMostKeptBytes = 512 << 20;
constexpr std::uint64_t kKeptPartOfLimit = 8;

std::uint32_t pages_for(std::size_t size) { return static_cast<std::uint32_t>((size + kPage - 1) / kPage); }

std::uint32_t granules_for(std::uint32_t pages) {
  constexpr std::uint64_t kPages = kGranule / kPage;
  return static_cast<std::uint32_t>((pages + kPages - 1) / kPages);
}

void* reserve_addresses(std::uint64_t size) {
  void* const at = ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at == MAP_FAILED ? nullptr : at;
}

BlockTable::Entry* reserve_entries(std::uint64_t granules) {
  void* const at = ::mmap(nullptr, granules * sizeof(BlockTable::Entry), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at == MAP_FAILED ? nullptr : static_cast<BlockTable::Entry*>(at);
}

}  // namespace

SpillError Heap::open(const HeapOptions& options) noexcept {
  if (::sysconf(_SC_PAGESIZE) != static_cast<long>(kPage)) {
    return {EOPNOTSUPP, "pages of this system are not of 4 KiB"};
  }
  options_ = options;
  limit_.store(options.limit);
  std::uint64_t span = kLargestSpan;
  void* reserved = reserve_addresses(span + kLargestAlignment);
  while (reserved == nullptr && span > kSmallestSpan) {
    span /= 2;
    reserved = reserve_addresses(span + kLargestAlignment);
  }
  if (reserved == nullptr) return {ENOMEM, "there is too little address space (ulimit -v)"};
  const auto granules = static_cast<std::uint32_t>(span / kGranule);
  BlockTable::Entry* const entries = reserve_entries(granules);
  if (entries == nullptr) {
    ::munmap(reserved, span + kLargestAlignment);
    return {ENOMEM, nullptr};
  }
  if (const SpillError failed = file_.open(options.folder, span)) {
    ::munmap(entries, granules * sizeof(BlockTable::Entry));
    ::munmap(reserved, span + kLargestAlignment);
    return failed;
  }
  table_ = BlockTable(entries, granules);
  process_ = ::getpid();
  const auto address = reinterpret_cast<std::uintptr_t>(reserved);
  const std::uintptr_t aligned = (address + kLargestAlignment - 1) & ~(kLargestAlignment - 1);
  base_ = static_cast<std::byte*>(reserved) + (aligned - address);
  span_ = span;
  return {};
}

SpillError Heap::reopen(const HeapOptions& options) noexcept {
  SpillFile attempt;
  const SpillError failed = attempt.open(options.folder, span_);
  attempt.close();
  if (failed) return failed;
  const InUse alone(*this, true);
  if (has_file()) freeze_blocks();
  if (has_file()) {  // there was no block
    file_.close();
    ++mapping_;
  }
  // The next block makes the new file.
  options_ = options;
  limit_.store(options.limit);
  return {};
}

std::byte* Heap::address_of(std::uint32_t granule) const noexcept { return base_ + granule * kGranule; }

std::uint32_t Heap::granule_of(const void* block) const noexcept {
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(static_cast<const std::byte*>(block) - base_) /
                                    kGranule);
}

Range Heap::block_at(const void* block) noexcept {
  const std::uint32_t first = granule_of(block);
  Range found;
  {
    const Locked locked(*this);
    found = table_.block(first);
    // Of a freed one that is kept no page is in use.
    if (found && table_.pages(first) == 0) found = {};
  }
  if (!found || address_of(first) != block) {
    say("a pointer that is freed, resized or asked for its size is not the beginning of a block");
    ::abort();
  }
  return found;
}

bool Heap::serves(std::size_t size, std::size_t alignment) const noexcept {
  return span_ != 0 && size <= span_ / 2 && std::has_single_bit(alignment) &&
         alignment <= kLargestAlignment && forking_.load() != ::pthread_self();
}

bool Heap::is_shared(Range block) const noexcept {
  return block.mapping == mapping_ && process_ == ::getpid();
}

bool Heap::has_file() const noexcept { return process_ == ::getpid() && file_.is_intact(); }

void Heap::refuse(int reason, std::size_t size) noexcept {
  use_->refused.fetch_add(1, std::memory_order_relaxed);
  if (!has_refused_.exchange(true)) {
    say("no room for a block of ", size, " bytes in ", options_.folder, ": ", reason_of(reason));
  }
}

/// Has nothing behind a range.
void Heap::unmap(Range range) const noexcept {
  static_cast<void>(::mmap(address_of(range.first), range.granules * kGranule, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0));
}

/// Has room behind pages of a block.
int Heap::back(Range range, std::uint32_t from_page, std::uint32_t to_page) noexcept {
  const std::uint64_t offset = range.first * kGranule;
  if (range.mapping != mapping_) {
    const int failed = file_.map(address_of(range.first), offset, range.granules * kGranule, true);
    if (failed != 0) return failed;
  }
  if (to_page <= from_page) return 0;
  int failed = 0;
  do {
    failed = file_.reserve(offset + from_page * kPage, (to_page - from_page) * kPage);
  } while ((failed == ENOSPC || failed == EDQUOT) && drop_one_kept());
  return failed;
}

/// Gives back what pages of a block have on the disk and in memory; they are zeros then.
void Heap::empty(std::uint32_t granule, std::uint32_t from_page, std::uint32_t to_page) noexcept {
  if (to_page <= from_page) return;
  std::byte* const begin = address_of(granule) + from_page * kPage;
  const std::uint64_t size = (to_page - from_page) * kPage;
  if (::madvise(begin, size, MADV_REMOVE) == 0) return;
  // It is locked in memory (mlock).
  ::munlock(begin, size);
  if (::madvise(begin, size, MADV_REMOVE) != 0) std::memset(begin, 0, size);
}

void* Heap::allocate(std::size_t size, std::size_t alignment, bool zeroed) noexcept {
  for (;;) {
    {
      const InUse use(*this);
      if (has_file()) {
        const Allocated done = allocate_in_file(size, alignment, zeroed);
        if (done.block != nullptr) return done.block;
        refuse(done.failed, size);
        break;
      }
    }
    if (const SpillError failed = renew_file()) {
      const InUse use(*this);
      refuse(failed.code, size);
      break;
    }
  }
  errno = ENOMEM;
  return nullptr;
}

Heap::Allocated Heap::allocate_in_file(std::size_t size, std::size_t alignment, bool zeroed) noexcept {
  const std::uint32_t pages = pages_for(size);
  const auto aligned_granules =
      static_cast<std::uint32_t>(std::max<std::uint64_t>(alignment, kGranule) / kGranule);
  if (aligned_granules == 1) {
    if (const Kept kept = take_kept(pages); kept.first != 0) {
      std::byte* const address = address_of(kept.first);
      if (zeroed) std::memset(address, 0, size);
      use_->add(kept.pages * kPage);
      watch_limit();
      return {address, 0};
    }
  }
  Range range;
  {
    const Locked locked(*this);
    range = table_.take(granules_for(pages), aligned_granules);
  }
  if (!range) return {nullptr, ENOMEM};
  const int failed = back(range, 0, pages);
  if (failed != 0) empty(range.first, 0, pages);
  {
    const Locked locked(*this);
    if (failed != 0) {
      table_.give_back(range.first, 0);
      return {nullptr, failed};
    }
    table_.set_mapping(range.first, mapping_);
    table_.set_pages(range.first, pages);
  }
  use_->add(pages * kPage);
  watch_limit();
  return {address_of(range.first), 0};
}

std::size_t Heap::usable_size(const void* block) noexcept {
  const InUse use(*this);
  const Range range = block_at(block);
  const Locked locked(*this);
  return table_.pages(range.first) * kPage;
}

bool Heap::resize(void* block, std::size_t size) noexcept {
  const std::uint32_t pages = pages_for(size);
  const InUse use(*this);
  const Range range = block_at(block);
  if (size > span_ / 2 || !has_file() || !is_shared(range)) return false;
  const std::uint32_t granules = granules_for(pages);
  std::uint32_t before = 0;
  Range added;
  {
    const Locked locked(*this);
    before = table_.pages(range.first);
    if (granules > range.granules) {
      added = table_.extend(range.first, granules);
      if (!added) return false;
    }
  }
  if (pages <= before) {
    empty(range.first, pages, before);
    const Locked locked(*this);
    table_.shrink(range.first, granules, mapping_);
    table_.set_pages(range.first, pages);
    use_->remove((before - pages) * kPage);
    return true;
  }
  int failed = added ? back(added, 0, 0) : 0;
  const bool is_mapped = failed == 0;
  if (is_mapped) failed = back(range, before, pages);
  if (is_mapped && failed != 0) empty(range.first, before, pages);
  {
    const Locked locked(*this);
    if (failed != 0) {
      table_.shrink(range.first, range.granules, is_mapped ? mapping_ : 0);
      return false;
    }
    table_.set_pages(range.first, pages);
  }
  use_->grow((pages - before) * kPage);
  watch_limit();
  return true;
}

Heap::Kept Heap::take_kept(std::uint32_t pages) noexcept {
  const Locked locked(*this);
  std::size_t best = kept_count_;
  for (std::size_t at = 0; at < kept_count_; ++at) {
    const std::uint32_t kept = kept_[at].pages;
    const bool fits = kept >= pages && kept - pages <= pages / 4;
    if (fits && (best == kept_count_ || kept < kept_[best].pages)) best = at;
  }
  if (best == kept_count_) return {};
  const Kept found = kept_[best];
  table_.set_pages(found.first, found.pages);
  std::copy(kept_.begin() + best + 1, kept_.begin() + kept_count_, kept_.begin() + best);
  --kept_count_;
  kept_pages_ -= found.pages;
  return found;
}

std::uint64_t Heap::most_kept_pages() const noexcept {
  if (!keeps_freed_.load(std::memory_order_relaxed)) return 0;
  const std::uint64_t limit = limit_.load(std::memory_order_relaxed);
  const std::uint64_t most = limit == 0 ? kMostKeptBytes : std::min(kMostKeptBytes, limit / kKeptPartOfLimit);
  return most / kPage;
}

bool Heap::keep(Kept freed) noexcept {
  const Locked locked(*this);
  if (kept_count_ == kMostKept || kept_pages_ + freed.pages > most_kept_pages()) return false;
  kept_[kept_count_++] = freed;
  kept_pages_ += freed.pages;
  table_.set_pages(freed.first, 0);
  return true;
}

bool Heap::drop_one_kept() noexcept {
  Kept oldest;
  Range block;
  {
    const Locked locked(*this);
    if (kept_count_ == 0) return false;
    oldest = kept_.front();
    block = table_.block(oldest.first);
    std::copy(kept_.begin() + 1, kept_.begin() + kept_count_, kept_.begin());
    --kept_count_;
    kept_pages_ -= oldest.pages;
  }
  give_back(block, oldest.pages);
  return true;
}

void Heap::give_back(Range range, std::uint32_t pages) noexcept {
  if (is_shared(range)) {
    empty(range.first, 0, pages);
  } else {
    // A copy of before a fork: pages that were written to are memory of the process, to be dropped.
    unmap(range);
    range.mapping = 0;
  }
  const Locked locked(*this);
  table_.give_back(range.first, range.mapping);
}

void Heap::release(void* block) noexcept {
  const InUse use(*this);
  const Range range = block_at(block);
  std::uint32_t pages = 0;
  {
    const Locked locked(*this);
    pages = table_.pages(range.first);
  }
  use_->remove(pages * kPage);
  if (is_shared(range) && pages <= most_kept_pages()) {
    do {
      if (keep({range.first, pages})) return;
    } while (drop_one_kept());
  }
  give_back(range, pages);
}

void Heap::keep_freed(bool keeps) noexcept {
  keeps_freed_.store(keeps);
  const InUse use(*this);
  while (!keeps && drop_one_kept()) {
  }
}

void Heap::report_to(ProcessUse& use) noexcept {
  const InUse alone(*this, true);
  use.live.store(use_->live.load());
  use.peak.store(std::max(use.peak.load(), use.live.load()));
  use_ = &use;
}

}  // namespace etstream::heap
