// SPDX-License-Identifier: BSD-3-Clause
//
// Ctrl-C, which Python hears of only when it is asked.
#pragma once

#include "etstream/byte_source.h"
#include "etstream/result.h"

namespace etstream::python {

/// Runs Python's handlers of signals that have come, in the main thread. Takes the GIL. Error: of a handler
/// that raised, as keep_exception() has it.
[[nodiscard]] Result<void> check_signals();

/// The same ten times a second, for who calls it all the time: with each the GIL is waited for.
[[nodiscard]] Result<void> check_signals_at_times();

/// `source`, a whole file, whose reads check signals at times: of what may be so large that reading it takes
/// long.
[[nodiscard]] ByteSource interruptible(ByteSource source);

}  // namespace etstream::python
