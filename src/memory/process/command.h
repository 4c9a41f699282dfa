// SPDX-License-Identifier: BSD-3-Clause
//
// Another program: functions to become it, or to run it, watch it meanwhile, and share memory with it.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/descriptor_posix.h"
#include "etstream/profile.h"
#include "etstream/result.h"

namespace etstream {

/// Becomes the command, which is not empty. Returns only if that fails, with the reason: kNotFound, or kIo.
[[nodiscard]] Error become(const std::vector<std::string>& command);

/// Returns the reason why the command, which is not empty, could not be run, by errno's value.
[[nodiscard]] Error cannot_run(const std::vector<std::string>& command, int failed);

// These are for Linux:

/// Runs the command, which is not empty, and waits for it, passing on the signals that are sent to this
/// process; one thread only. It calls `look` as soon as the command runs, and then every 10 ms, or up to 100
/// ms if this would take more than 1 % of a processor. Errors: kNotFound, kIo, kOutOfMemory, if it can't be
/// started.
[[nodiscard]] Result<CommandEnd> run_watched(const std::vector<std::string>& command,
                                             const std::function<void()>& look);
class SignalsHeld;
/// Does so with signals that are held already.
[[nodiscard]] Result<CommandEnd> run_watched(const std::vector<std::string>& command,
                                             const std::function<void()>& look, const SignalsHeld& signals);

/// Makes a file of `size` bytes in memory, whose path an environment variable gives to the processes that are
/// started from now on. Error: kOutOfMemory.
[[nodiscard]] Result<Descriptor> share_memory(const char* name, std::size_t size, const char* variable);

/// Makes the kOutOfMemory error "cannot DOING: REASON", from errno's value.
[[nodiscard]] Error out_of_resources(std::string_view doing, int error);

}  // namespace etstream
