// SPDX-License-Identifier: BSD-3-Clause
#include "memory/profile/phase_log.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <utility>

#include "core/base/text.h"
#include "core/io/descriptor_posix.h"
#include "etstream/profile.h"

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

/// Resets the high-water mark of this process; false if the kernel refuses.
bool reset_high_water() {
  const Descriptor file(::open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC));
  return file && ::write(file.get(), "5", 1) == 1;
}

void tell(bool begins, std::string_view name) {
  const char* const path = std::getenv(kPhaseLogVariable);
  if (path == nullptr) return;
  const Descriptor log(::open(path, O_WRONLY | O_APPEND | O_CLOEXEC));
  if (!log) return;
  PhaseEvent event;
  event.begins = begins;
  event.process = ::getpid();
  event.thread = ::syscall(SYS_gettid);
  event.memory = memory_of(event.process).value_or(ProcessMemory());
  const ProcessWork work = work_of(event.process).value_or(ProcessWork());
  event.read = work.read;
  event.written = work.written;
  ::rusage ended{};
  if (::getrusage(RUSAGE_CHILDREN, &ended) == 0)
    event.below = static_cast<std::uint64_t>(ended.ru_maxrss) << 10;
  event.cpu = nanoseconds_of(CLOCK_PROCESS_CPUTIME_ID);
  event.was_reset = reset_high_water();
  event.time = nanoseconds_of(CLOCK_MONOTONIC);
  event.name = name;
  const std::string line = line_of(event);
  static_cast<void>(!::write(log.get(), line.data(), line.size()));
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
  for_each_line(lines, [&](std::string_view line) {
    if (auto event = event_of(line)) events.push_back(std::move(*event));
  });
  return events;
}

ProfiledPhase::ProfiledPhase(std::string_view name) noexcept {
  try {
    tell(true, name);
  } catch (...) {  // no memory for the line
  }
}

ProfiledPhase::~ProfiledPhase() {
  try {
    tell(false, {});
  } catch (...) {
  }
}

}  // namespace etstream
