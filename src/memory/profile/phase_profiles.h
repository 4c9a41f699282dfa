// SPDX-License-Identifier: BSD-3-Clause
//
// Peaks of processes and phases, from the log of phases and from samples.
#pragma once

#include <cstdint>
#include <vector>

#include "etstream/profile.h"
#include "memory/process/process_watch.h"
#include "memory/profile/phase_log.h"

namespace etstream {

/// Returns the seconds between times in nanoseconds; 0 if `end` is before `begin`.
[[nodiscard]] double seconds_between(std::uint64_t begin, std::uint64_t end);

/// Raises each figure of `peak` to that of `other`, if it is larger.
void raise_to(PeakMemory& peak, const PeakMemory& other);
/// Raises `peak.resident` to a high-water mark. The difference counts as anonymous.
void raise_to_mark(PeakMemory& peak, std::uint64_t high_water);

/// Adds processes, phases and notes to the profile of a command that began at `begin` (nanoseconds).
void add_profiles(const std::vector<WatchedProcess>& processes, std::vector<PhaseEvent> events,
                  std::uint64_t begin, Profile& profile);

/// Adds the times in which the memory of a process grew by most without a fall, from its samples.
void add_jumps(const std::vector<WatchedProcess>& processes, std::uint64_t begin, Profile& profile);

/// Puts jumps in order of time, gives each its phase, and adds up those of the same line.
void finish_jumps(const std::vector<WatchedProcess>& processes, Profile& profile);

}  // namespace etstream
