// SPDX-License-Identifier: BSD-3-Clause
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <string>
#include <system_error>
#include <utility>

#include "base/text.h"
#include "base/try.h"
#include "etstream/profile.h"
#include "heap/shared_tree_use_linux.h"
#include "process/command.h"
#include "process/process_figures.h"
#include "profile/caller_watch.h"
#include "profile/phase_log.h"
#include "profile/phase_profiles.h"
#include "profile/process_watch.h"

namespace etstream {
namespace {

constexpr std::size_t kMostLog = std::size_t{256} << 20;
constexpr unsigned kLooksPerCache = 5;

/// The file in memory that processes tell of their phases in.
class PhaseLog {
 public:
  static Result<PhaseLog> make() {
    PhaseLog made;
    made.file_ = ::memfd_create("etstream-profile", MFD_CLOEXEC);
    if (made.file_ < 0) {
      return Error{ErrorCode::kOutOfMemory,
                   text("cannot share memory with the command: {}", std::generic_category().message(errno)),
                   errno};
    }
    // By this process's name for it: a command may close descriptors that it does not know.
    ::setenv(kPhaseLogVariable, text("/proc/{}/fd/{}", ::getpid(), made.file_).c_str(), 1);
    return made;
  }
  PhaseLog(PhaseLog&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  PhaseLog& operator=(PhaseLog&&) = delete;
  PhaseLog(const PhaseLog&) = delete;
  PhaseLog& operator=(const PhaseLog&) = delete;
  ~PhaseLog() {
    if (file_ >= 0) ::close(file_);
  }

  /// From `begin` on.
  [[nodiscard]] std::string content(std::uint64_t begin) const {
    std::string out;
    char buffer[65536];
    while (begin + out.size() < kMostLog) {
      const ssize_t n = ::pread(file_, buffer, sizeof(buffer), static_cast<off_t>(begin + out.size()));
      if (n <= 0) break;
      out.append(buffer, static_cast<std::size_t>(n));
    }
    return out;
  }

 private:
  PhaseLog() = default;

  int file_ = -1;
};

std::uint64_t now() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(time.tv_nsec);
}

/// In the heaps of the processes that run.
std::uint64_t spilled_in(const heap::SharedTreeUse& heaps, const ProcessWatch& watch) {
  std::uint64_t spilled = 0;
  heaps.for_each_process([&](const heap::ProcessUse& process) {
    if (watch.runs(process.process.load())) spilled += process.live.load();
  });
  return spilled;
}

void add_samples(const MemorySeries& total, std::uint64_t begin, Profile& profile) {
  for (const MemorySample& sample : total.samples()) {
    const double time = static_cast<double>(sample.time - std::min(sample.time, begin)) / 1e9;
    profile.samples.push_back({time, sample.anonymous, sample.file, sample.spilled});
    profile.peak.resident = std::max(profile.peak.resident, sample.resident);
    profile.peak.anonymous = std::max(profile.peak.anonymous, sample.anonymous);
    profile.peak.file = std::max(profile.peak.file, sample.file);
    profile.spilled = std::max(profile.spilled, sample.spilled);
  }
}

/// What the kernel counted of processes that have ended, also of those that were not seen.
void add_ended(Profile& profile) {
  ::rusage ended{};
  if (::getrusage(RUSAGE_CHILDREN, &ended) != 0) return;
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  profile.cpu_seconds = seconds(ended.ru_utime) + seconds(ended.ru_stime);
  const std::uint64_t largest = static_cast<std::uint64_t>(ended.ru_maxrss) << 10;
  if (largest <= profile.peak.resident) return;
  profile.peak.anonymous += largest - profile.peak.resident;
  profile.peak.resident = largest;
}

}  // namespace

Result<CommandEnd> run_profiled(const std::vector<std::string>& command, Profile& profile,
                                const ProfileOptions& options) {
  profile = {};
  profile.command = command;
  if (command.empty()) return make_error(ErrorCode::kInvalidArgument, "there is no command to run");
  ETSTREAM_ASSIGN(const PhaseLog log, PhaseLog::make());
  ETSTREAM_ASSIGN(const heap::SharedTreeUse heaps, heap::SharedTreeUse::make());
  // Those whose parent has ended become children of this process.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ProcessWatch watch;
  CallerWatch callers;
  std::uint64_t told = 0;  // of the log
  unsigned looks = 0;
  const int self = ::getpid();
  const std::uint64_t cache_before = page_cache();
  const std::uint64_t begin = now();
  const auto look = [&] {
    watch.look(self, now(), [&] { return spilled_in(heaps, watch); });
    if (options.callers) {
      const std::string lines = log.content(told);
      told += lines.size();
      callers.take(lines);
      callers.look(watch.processes(), now());
    }
    // It takes as long to tell as a process's memory, and changes less at a time.
    if (looks++ % kLooksPerCache != 0) return;
    const std::uint64_t cache = page_cache();
    profile.page_cache_growth = std::max(profile.page_cache_growth, cache - std::min(cache, cache_before));
  };
  ETSTREAM_ASSIGN(const CommandEnd end, run_watched(command, look));
  profile.seconds = static_cast<double>(now() - begin) / 1e9;
  profile.end = end;
  if (!can_tell_children()) {
    profile.notes.emplace_back(
        "the kernel does not tell which processes the command started "
        "(CONFIG_PROC_CHILDREN); nothing is known of any");
  }
  add_profiles(watch.processes(), read_phase_log(log.content(0)), begin, profile);
  add_samples(watch.total(), begin, profile);
  if (options.callers) callers.add_jumps(begin, profile);
  add_ended(profile);
  return end;
}

}  // namespace etstream
