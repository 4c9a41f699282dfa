// SPDX-License-Identifier: BSD-3-Clause
//
// The heap in a process that runs already, for a time: the entries through which loaded objects call malloc
// and its kin lead here. Large blocks of all threads come from the heap then.
//
// A block lasts longer than that. So once the heap has been in use, free, realloc and malloc_usable_size lead
// here until the process ends, and so do dlopen and dlmopen, which have what they load call these.
//
// What is not caught: an address of free that was kept before, or that dlsym() gives, and the calls that an
// object's initialisation makes. Of these none may free or resize a block that comes from the heap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "etstream/result.h"
#include "heap/environment.h"
#include "heap/statistics.h"

namespace etstream::heap {

/// How the blocks of this process are served.
enum class Served : std::uint8_t {
  kHere,       // by this heap, until stop()
  kByCommand,  // by that of `etstream run`, whose folder and limit hold
};

/// Has blocks of `from` bytes and more come from a file in `folder` (see spill_folder()). Of their pages
/// `limit` bytes stay in memory, or, if it is 0, as many as the system leaves there.
///
/// There may be several uses at a time, each of which calls stop(): folder and limit are those of the first
/// until all have stopped. Any thread. kNotFound, kIo, kInvalidArgument: the folder can't hold the heap.
[[nodiscard]] Result<Served> start(const std::string& folder, std::uint64_t limit,
                                   std::size_t from = kDefaultFrom);

/// Has the memory of Python's small objects that comes to be in such a use lie there too. Call it with the
/// GIL held, after start(); once is enough.
void serve_python_arenas() noexcept;

/// Ends a use that start() answered with kHere.
void stop() noexcept;

/// What this heap has done in this process so far, in all uses; the peak since the last of these began.
[[nodiscard]] const ProcessUse& done() noexcept;

}  // namespace etstream::heap
