// SPDX-License-Identifier: BSD-3-Clause
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <string>

#include "etstream/profiled_phase.h"
#include "process/process_figures.h"
#include "profile/phase_log.h"

namespace etstream {
namespace {

std::uint64_t nanoseconds(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
}

/// Whether the mark was reset, of this process.
bool reset_high_water() {
  const int file = ::open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool done = ::write(file, "5", 1) == 1;
  ::close(file);
  return done;
}

void tell(bool begins, std::string_view name) {
  const char* const path = std::getenv(kPhaseLogVariable);
  if (path == nullptr) return;
  const int log = ::open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
  if (log < 0) return;
  PhaseEvent event;
  event.begins = begins;
  event.process = ::getpid();
  event.thread = ::syscall(SYS_gettid);
  if (const auto memory = memory_of(event.process)) {
    event.high_water = memory->high_water;
    event.resident = memory->resident;
    event.anonymous = memory->anonymous;
    event.file = memory->file;
  }
  if (const auto work = work_of(event.process)) {
    event.read = work->read;
    event.written = work->written;
  }
  event.cpu = nanoseconds(CLOCK_PROCESS_CPUTIME_ID);
  event.was_reset = reset_high_water();
  event.time = nanoseconds(CLOCK_MONOTONIC);
  event.name = name;
  const std::string line = line_of(event);
  static_cast<void>(!::write(log, line.data(), line.size()));
  ::close(log);
}

}  // namespace

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
