// SPDX-License-Identifier: BSD-3-Clause
//
// The heap in a process that runs already, for a time. The entries through which loaded objects call malloc
// and its kin are pointed to functions of this library. Large blocks of all threads then come from the heap.
//
// Blocks outlive that time. So once the heap has been in use, the entries for free, realloc,
// malloc_usable_size and madvise stay changed until the process ends. So do those for dlopen and dlmopen,
// which change the objects that they load.
//
// Some calls are not caught: by an address of free that was copied before, or that dlsym() returned, and from
// the initialisers of an object that is being loaded. None of these calls may free or resize a block of the
// heap.
#pragma once

#include <cstdint>
#include <string>

#include "etstream/result.h"
#include "memory/heap/statistics_posix.h"

namespace etstream::heap {

/// Puts blocks of kDefaultFrom bytes and more into a file in `folder` (see spill_folder()). Up to `limit`
/// bytes of their pages stay in memory; with 0, the system decides. Returns false, without effect, under
/// `etstream run`, whose folder and limit apply.
///
/// Several uses may overlap, and each calls stop(). The folder and the limit are those of the first until all
/// have stopped. Thread-safe. Errors: kNotFound, kIo, kInvalidArgument if the folder can't hold the heap.
[[nodiscard]] Result<bool> start(const std::string& folder, std::uint64_t limit);

/// Returns whether the system tells how much memory this process has mapped in. Otherwise a limit is not
/// kept.
[[nodiscard]] bool keeps_limit() noexcept;

/// Puts new memory of Python's small objects there too, during uses. Call it once after start(), with the
/// GIL.
void serve_python_arenas() noexcept;

/// Ends a use for which start() returned true.
void stop() noexcept;

/// Returns the counts of this heap over all uses. The peak is that since the last use began.
[[nodiscard]] const ProcessUse& done() noexcept;

}  // namespace etstream::heap
