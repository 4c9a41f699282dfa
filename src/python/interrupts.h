// SPDX-License-Identifier: BSD-3-Clause
//
// Ctrl-C: Python runs its signal handlers only when it is asked to.
#pragma once

#include <memory>
#include <string>

#include "etstream/byte_source.h"
#include "etstream/result.h"

namespace etstream::python {

/// Runs Python's handlers of signals that have come, in the main thread. Takes the GIL. Error: of a handler
/// that raised, as keep_exception() has it.
[[nodiscard]] Result<void> check_signals();

/// The same at most ten times a second, for frequent calls: each run waits for the GIL.
[[nodiscard]] Result<void> check_signals_at_times();

/// The file at a path, whose reads check signals at times: it may be so large that reading it takes long. It
/// keeps `owner`, of whatever has the file last. Errors: those of ByteSource::file.
[[nodiscard]] Result<ByteSource> open_interruptible_file(const std::string& path,
                                                         std::shared_ptr<const void> owner = nullptr);

}  // namespace etstream::python
