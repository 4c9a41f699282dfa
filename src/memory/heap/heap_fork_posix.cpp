// SPDX-License-Identifier: BSD-3-Clause
//
// The effects of a fork, or of a lost file, on the heap's blocks and its file.
#include "memory/heap/heap_posix.h"
#include "memory/heap/in_use_posix.h"

namespace etstream::heap {

/// Gives up the file. Without it, blocks can't become private copies. A child that touches them crashes, as
/// it must not share them.
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

/// Makes the first file after a fork. Also replaces a file whose descriptor was closed, or a file of another
/// process, if this one came to be without the handlers of a fork.
SpillError Heap::renew_file() noexcept {
  const InUse alone(*this, true);
  if (has_file()) return {};
  abandon_file();
  room_.clear(table_.highest());
  return file_.open(options_.folder, span_);
}

/// Unmaps ranges without a block. Their mappings would keep the file, and its room on the disk, for as long
/// as they exist.
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
  // The parent continues with its file.
  file_.close();
  unmap_free_ranges();
  ++mapping_;
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
