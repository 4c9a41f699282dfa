// SPDX-License-Identifier: BSD-3-Clause
//
// Peaks of processes and phases, from what processes told and what was seen of them.
#pragma once

#include <cstdint>
#include <vector>

#include "etstream/profile.h"
#include "profile/phase_log.h"
#include "profile/process_watch.h"

namespace etstream {

/// Adds processes, phases, and the notes on them to the profile of a command that began at `begin`, in
/// nanoseconds.
void add_profiles(const std::vector<WatchedProcess>& processes, std::vector<PhaseEvent> events,
                  std::uint64_t begin, Profile& profile);

}  // namespace etstream
