// SPDX-License-Identifier: BSD-3-Clause
//
// The log of phases: a line for each beginning and end, in a file that the environment names.
//
//   B PID THREAD TIME MARK RESIDENT ANONYMOUS FILE CPU READ WRITTEN BELOW RESET NAME
//
// B or E stands for begin or end. TIME is in nanoseconds of CLOCK_MONOTONIC. MARK is VmHWM since the line
// before; it, RESIDENT, ANONYMOUS and FILE are in bytes. CPU is in nanoseconds since the process began, and
// READ and WRITTEN in bytes since then. BELOW is the most resident bytes that one of the processes below it
// had which have ended. RESET is 1 if the mark was reset. src/python/etstream/profile.py writes the same
// lines.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "memory/process/process_figures.h"

namespace etstream {

inline constexpr const char* kPhaseLogVariable = "ETSTREAM_PROFILE";

struct PhaseEvent {
  bool begins = false;
  std::int32_t process = 0;
  std::int64_t thread = 0;
  std::uint64_t time = 0;
  ProcessMemory memory;
  std::uint64_t cpu = 0;
  std::uint64_t read = 0;
  std::uint64_t written = 0;
  std::uint64_t below = 0;
  bool was_reset = false;
  std::string name;
};

/// Takes a number for each of `numbers` from the front of a line, with the space behind it. If there is none,
/// returns false, and leaves the rest.
template <class... Numbers>
[[nodiscard]] bool take_numbers(std::string_view& line, Numbers&... numbers) {
  const auto take = [&](auto& number) {
    const auto parsed = std::from_chars(line.data(), line.data() + line.size(), number);
    const auto length = static_cast<std::size_t>(parsed.ptr - line.data());
    if (parsed.ec != std::errc() || (length < line.size() && line[length] != ' ')) return false;
    line.remove_prefix(std::min(length + 1, line.size()));
    return true;
  };
  return (take(numbers) && ...);
}

/// Calls `visit` with each line that has its end: a process may be ended as it writes.
template <class Visit>
void for_each_line(std::string_view lines, const Visit& visit) {
  for (std::size_t end = 0; (end = lines.find('\n')) != std::string_view::npos;
       lines.remove_prefix(end + 1)) {
    visit(lines.substr(0, end));
  }
}

[[nodiscard]] std::string line_of(const PhaseEvent& event);
/// Skips other lines: any process may write to the file.
[[nodiscard]] std::vector<PhaseEvent> read_phase_log(std::string_view lines);

}  // namespace etstream
