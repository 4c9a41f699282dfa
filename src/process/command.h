// SPDX-License-Identifier: BSD-3-Clause
//
// Another program: to become it, or to run it and look at it meanwhile.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "etstream/command_end.h"
#include "etstream/result.h"

namespace etstream {

/// Becomes the command, which is not empty. Returns only the reason why that can't be: kNotFound, or kIo.
[[nodiscard]] Error become(const std::vector<std::string>& command);

/// Why the command, which is not empty, could not be run, by errno's value.
[[nodiscard]] Error cannot_run(const std::vector<std::string>& command, int failed);

/// Runs the command, which is not empty, and waits for it, passing on the signals that are sent to this
/// process; one thread only. It calls `look` as soon as the command runs, and then every 10 ms, or up to 100
/// ms where this would take more than 1 % of a processor. Errors: kNotFound, kIo, kOutOfMemory, where it
/// can't be started.
[[nodiscard]] Result<CommandEnd> run_watched(const std::vector<std::string>& command,
                                             const std::function<void()>& look);

}  // namespace etstream
