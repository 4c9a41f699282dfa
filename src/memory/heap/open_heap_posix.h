// SPDX-License-Identifier: BSD-3-Clause
//
// The heap of a process that `etstream run` has begun.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "memory/heap/environment.h"
#include "memory/heap/malloc_rules.h"
#include "memory/heap/pages.h"
#include "memory/heap/say.h"

namespace etstream::heap {

/// Opens the heap as the environment says, or reports why it can't be opened. Returns the smallest size that
/// it serves, or kNever if it is not open.
[[nodiscard]] inline std::size_t open_heap() {
  const auto number = [](const char* name, std::uint64_t otherwise) {
    const char* const text = std::getenv(name);
    if (text != nullptr) std::from_chars(text, text + std::strlen(text), otherwise);
    return otherwise;
  };
  const char* const folder = std::getenv(kFolderVariable);
  if (folder == nullptr) return kNever;
  const std::uint64_t limit = number(kLimitVariable, 0);
  const SpillError failed = the_heap.open({folder, limit});
  if (failed) {
    const bool has_limit = failed.limit.name != nullptr;
    say("large blocks of process ", static_cast<std::uint64_t>(::getpid()), " stay in memory, not in ",
        folder, ": ", failed.reason != nullptr ? failed.reason : reason_of(failed.code),
        has_limit ? " (" : "", has_limit ? failed.limit.name : "", has_limit ? ")" : "");
    return kNever;
  }
  if (limit != 0 && !can_keep_limit()) {
    say("the limit of process ", static_cast<std::uint64_t>(::getpid()),
        " is not kept: /proc does not tell what it has in memory");
  }
  return std::max<std::size_t>(number(kFromVariable, kDefaultFrom), kGranule);
}

}  // namespace etstream::heap
