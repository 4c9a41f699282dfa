// SPDX-License-Identifier: BSD-3-Clause
#include "memory/profile/phase_log.h"

#include <algorithm>
#include <optional>

#include "core/base/text.h"

namespace etstream {
namespace {

std::optional<PhaseEvent> event_of(std::string_view line) {
  PhaseEvent event;
  event.begins = line.starts_with("B ");
  if (!event.begins && !line.starts_with("E ")) return std::nullopt;
  line.remove_prefix(2);
  ProcessMemory& memory = event.memory;
  int was_reset = 0;
  if (!take_numbers(line, event.process, event.thread, event.time, memory.high_water, memory.resident,
                    memory.anonymous, memory.file, event.cpu, event.read, event.written, event.below,
                    was_reset)) {
    return std::nullopt;
  }
  event.was_reset = was_reset != 0;
  event.name = line;
  return event;
}

}  // namespace

std::string line_of(const PhaseEvent& event) {
  std::string name = event.name;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return text("{} {} {} {} {} {} {} {} {} {} {} {} {} {}\n", event.begins ? "B" : "E", event.process,
              event.thread, event.time, event.memory.high_water, event.memory.resident,
              event.memory.anonymous, event.memory.file, event.cpu, event.read, event.written, event.below,
              event.was_reset ? 1 : 0, name);
}

std::vector<PhaseEvent> read_phase_log(std::string_view lines) {
  std::vector<PhaseEvent> events;
  while (!lines.empty()) {
    const std::size_t end = lines.find('\n');
    if (end == std::string_view::npos) break;  // a process was ended as it wrote
    if (auto event = event_of(lines.substr(0, end))) events.push_back(std::move(*event));
    lines.remove_prefix(end + 1);
  }
  return events;
}

}  // namespace etstream
