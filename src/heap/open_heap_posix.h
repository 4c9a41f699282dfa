// SPDX-License-Identifier: BSD-3-Clause
//
// The heap of a process that `etstream run` has begun.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "heap/environment.h"
#include "heap/heap_posix.h"
#include "heap/malloc_rules.h"
#include "heap/say.h"

namespace etstream::heap {

/// Opens `heap` as the environment says, or tells why it can't be. The smallest size that it is to serve:
/// kNever where it is not open.
[[nodiscard]] inline std::size_t open_heap(Heap& heap) {
  const char* const folder = std::getenv(kFolderVariable);
  if (folder == nullptr) return kNever;
  const SpillError failed = heap.open({folder, number_in_environment(kLimitVariable, 0)});
  if (failed) {
    say("large blocks of process ", static_cast<std::uint64_t>(::getpid()), " stay in memory, not in ",
        folder, ": ", failed.reason != nullptr ? failed.reason : reason_of(failed.code));
    return kNever;
  }
  return std::max<std::size_t>(number_in_environment(kFromVariable, kDefaultFrom), kGranule);
}

}  // namespace etstream::heap
