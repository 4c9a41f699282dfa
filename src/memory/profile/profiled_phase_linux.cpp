// SPDX-License-Identifier: BSD-3-Clause
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <string>

#include "core/io/descriptor_posix.h"
#include "etstream/profile.h"
#include "memory/process/process_figures.h"
#include "memory/profile/phase_log.h"

namespace etstream {
namespace {

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
