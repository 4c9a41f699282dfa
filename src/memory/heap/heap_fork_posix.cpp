// SPDX-License-Identifier: BSD-3-Clause
//
// The effects of a fork, or of a lost file, on the heap's blocks and its file.
#include <unistd.h>

#include <cerrno>

#include "memory/heap/heap_posix.h"
#include "memory/heap/in_use_posix.h"
#include "memory/heap/say.h"

namespace etstream::heap {
namespace {

/// The exit code of a child that has no copies of its parent's blocks; that of `etstream run` without a heap.
constexpr int kNoCopies = 125;

}  // namespace

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

}  // namespace etstream::heap
