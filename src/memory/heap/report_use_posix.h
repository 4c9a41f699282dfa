// SPDX-License-Identifier: BSD-3-Clause
//
// The counts of this process's heap, where a process above reads them: one that runs `etstream run --report`
// or `etstream profile`.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include "memory/heap/malloc_rules.h"
#include "memory/heap/statistics.h"
#include "memory/heap/tree_use_file_posix.h"

namespace etstream::heap {

/// Puts the heap's counts into the memory that the environment names, if it names some.
inline void report_use() noexcept {
  const int file = open_tree_use();
  if (file < 0) return;
  void* const shared = ::mmap(nullptr, sizeof(TreeUse), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  if (shared == MAP_FAILED) return;
  TreeUse& tree = *static_cast<TreeUse*>(shared);
  if (ProcessUse* const use = tree.place_of(::getpid())) the_heap.report_to(*use, tree.large);
}

}  // namespace etstream::heap
