// SPDX-License-Identifier: BSD-3-Clause
//
// What becomes of the heap's blocks and file when the process forks, or finds that it has lost its file.
#include "memory/heap/heap_posix.h"
#include "memory/heap/in_use_posix.h"

namespace etstream::heap {

/// Without the file blocks can't become private copies. A child that touches them crashes; it must not share
/// them.
void Heap::abandon_file() noexcept {
  empty_ready();
  if (file_.is_open()) {
    table_.for_each_block([&](Range block) {
      if (block.mapping == mapping_) keep_from_children(part_of(block));
    });
    file_.close();
  }
  ++mapping_;
  *mark_ = 1;
}

/// Makes the first file after a fork, or instead of one whose descriptor was closed, or that is another
/// process's, which came to be without the handlers of a fork.
SpillError Heap::renew_file() noexcept {
  const InUse alone(*this, true);
  if (has_file()) return {};
  abandon_file();
  room_.clear(table_.highest());
  return file_.open(options_.folder, span_);
}

/// What is mapped where no block is would keep the file, and its room on the disk, for as long.
void Heap::unmap_free_ranges() noexcept {
  std::uint32_t end = 1;
  const auto unmap_up_to = [&](std::uint32_t begin) {
    if (begin > end) unmap({end, begin - end, 0});
  };
  table_.for_each_block([&](Range block) {
    unmap_up_to(block.first);
    end = block.first + block.granules;
  });
  unmap_up_to(table_.highest());
}

void Heap::freeze_blocks() noexcept {
  empty_ready();
  Range run;
  const auto freeze = [&] {
    if (run && file_.map(part_of(run), false) != 0) keep_from_children(part_of(run));
  };
  table_.for_each_block([&](Range block) {
    if (block.mapping != mapping_) return;
    if (run && run.first + run.granules == block.first) {
      run.granules += block.granules;
      return;
    }
    freeze();
    run = block;
  });
  freeze();
  if (!run) return;
  unmap_free_ranges();
  file_.close();
  ++mapping_;
}

void Heap::before_fork() noexcept {
  if (span_ == 0) return;
  const SignalsBlocked signals;
  ::pthread_rwlock_wrlock(&uses_);
  forking_.store(::pthread_self());
  if (has_file()) {
    freeze_blocks();
  } else if (file_.is_open()) {
    abandon_file();
  }
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
  // The parent goes on with its file.
  file_.close();
  unmap_free_ranges();
  ++mapping_;
  *mark_ = 1;
  is_watched_.store(false);
  // The parent's place is the parent's.
  own_use_.live.store(live_at_fork_);
  own_use_.peak.store(live_at_fork_);
  own_use_.blocks.store(0);
  own_use_.paged_out.store(0);
  own_use_.refused.store(0);
  use_ = &own_use_;
  // Its thread has another number than the one that locked this.
  const ::pthread_rwlock_t unlocked = PTHREAD_RWLOCK_INITIALIZER;
  uses_ = unlocked;
  forking_.store({});
}

}  // namespace etstream::heap
