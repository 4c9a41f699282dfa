// SPDX-License-Identifier: BSD-3-Clause
//
// Which folder holds the heap's file, and why one can't. For who sets the heap up: this may allocate.
#pragma once

#include <string>

#include "etstream/result.h"
#include "heap/spill_file.h"

namespace etstream::heap {

/// The absolute path of a folder; of an empty one, that of $TMPDIR, or /var/tmp, as /tmp is often in memory.
[[nodiscard]] Result<std::string> spill_folder(const std::string& folder);

/// kNotFound, kIo, or kInvalidArgument where the folder is not of a kind that can hold the heap.
[[nodiscard]] Error cannot_spill_to(const std::string& folder, const SpillError& failed);

}  // namespace etstream::heap
