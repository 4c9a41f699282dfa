// SPDX-License-Identifier: BSD-3-Clause
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <string>

#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/descriptor_posix.h"
#include "etstream/profile.h"
#include "memory/heap/shared_heap_linux.h"
#include "memory/process/command.h"
#include "memory/process/process_figures.h"
#include "memory/process/process_watch.h"
#include "memory/process/signals_held_linux.h"
#include "memory/profile/jump_watch.h"
#include "memory/profile/phase_log.h"
#include "memory/profile/phase_profiles.h"

namespace etstream {
namespace {

constexpr std::size_t kMostLog = std::size_t{256} << 20;
constexpr unsigned kLooksPerCache = 5;

/// Reads the phases' log from `begin` on.
std::string log_from(const Descriptor& log, std::uint64_t begin) {
  std::string out;
  char buffer[65536];
  while (begin + out.size() < kMostLog) {
    const ssize_t n = ::pread(log.get(), buffer, sizeof(buffer), static_cast<off_t>(begin + out.size()));
    if (n <= 0) break;
    out.append(buffer, static_cast<std::size_t>(n));
  }
  return out;
}

/// Opens the log of a profile around this one; nothing if there is none.
Descriptor log_around() {
  const char* const path = std::getenv(kPhaseLogVariable);
  return Descriptor(path != nullptr ? ::open(path, O_WRONLY | O_APPEND | O_CLOEXEC) : -1);
}

/// Reads the whole lines of the log from `told` on, which it moves behind them, and tells them to the log of
/// the profile around this one: that can't know which processes are below this one.
std::string new_lines(const Descriptor& log, const Descriptor& around, std::uint64_t& told) {
  std::string lines = log_from(log, told);
  lines.resize(lines.rfind('\n') + 1);
  told += lines.size();
  if (around && !lines.empty()) static_cast<void>(!::write(around.get(), lines.data(), lines.size()));
  return lines;
}

void add_samples(const MemorySeries& total, std::uint64_t begin, Profile& profile) {
  for (const MemorySample& sample : total.samples()) {
    profile.samples.push_back(
        {seconds_between(begin, sample.time), sample.anonymous, sample.file, sample.spilled});
    raise_to(profile.peak, {sample.resident, sample.anonymous, sample.file});
    profile.spilled = std::max(profile.spilled, sample.spilled);
  }
}

/// Adds the kernel's counts of processes that have ended, also of those that no look has seen.
void add_ended(Profile& profile) {
  ::rusage ended{};
  if (::getrusage(RUSAGE_CHILDREN, &ended) != 0) return;
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  profile.cpu_seconds = seconds(ended.ru_utime) + seconds(ended.ru_stime);
  raise_to_mark(profile.peak, static_cast<std::uint64_t>(ended.ru_maxrss) << 10);
}

}  // namespace

Result<CommandEnd> run_profiled(const std::vector<std::string>& command, Profile& profile,
                                const ProfileOptions& options) {
  profile = {};
  profile.command = command;
  if (command.empty()) return make_error(ErrorCode::kInvalidArgument, "there is no command to run");
  const Descriptor around = log_around();
  ETSTREAM_ASSIGN(const Descriptor log, share_memory("etstream-profile", 0, kPhaseLogVariable));
  ETSTREAM_ASSIGN(const heap::SharedTreeUse heaps, heap::SharedTreeUse::open());
  // A process whose parent ends becomes a child of this one.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ProcessWatch watch;
  CallerWatch callers;
  BlockWatch blocks;
  std::uint64_t told = 0;  // how much of the log was read
  unsigned looks = 0;
  const int self = ::getpid();
  const std::uint64_t cache_before = page_cache();
  const SignalsHeld signals;
  const CommandGroup command_group(!around);  // a profile around this one has made one
  const CgroupMemory group_before = command_group.memory();
  const auto now = [] { return nanoseconds_of(CLOCK_MONOTONIC); };
  const std::optional<CgroupUse> use_before = cgroup_use(group_before.use);
  const auto shared_growth = [&]() -> std::optional<std::uint64_t> {
    const auto use = cgroup_use(group_before.use);
    if (!use || !use_before) return std::nullopt;
    const std::uint64_t all_before = use_before->anonymous + use_before->shared;
    const std::uint64_t all = std::max(use->anonymous + use->shared, all_before);
    profile.cgroup_growth = std::max(profile.cgroup_growth, all - all_before);
    return use->shared - std::min(use->shared, use_before->shared);
  };
  const std::uint64_t begin = now();
  const auto look = [&] {
    if (looks == 0) command_group.leave();
    watch.look(self, now(), heaps.spilled(), shared_growth);
    const std::string lines = new_lines(log, around, told);
    if (options.callers) {
      callers.take(lines);
      callers.look(watch.processes(), now());
      blocks.look(watch, heaps.large_blocks(), now());
    }
    // Reading this takes as long as reading a process's memory, and it changes more slowly.
    if (looks++ % kLooksPerCache != 0) return;
    const std::uint64_t cache = page_cache();
    profile.page_cache_growth = std::max(profile.page_cache_growth, cache - std::min(cache, cache_before));
  };
  ETSTREAM_ASSIGN(const CommandEnd end, run_watched(command, look, signals));
  profile.seconds = seconds_between(begin, now());
  profile.end = end;
  const CgroupMemory group = command_group.memory();
  profile.cgroup_limit = group.limit;
  profile.cgroup_kills = group.kills - std::min(group.kills, group_before.kills);
  if (!can_tell_children()) {
    profile.notes.emplace_back(
        "the kernel does not tell which processes the command started "
        "(CONFIG_PROC_CHILDREN); nothing is known of any");
  }
  static_cast<void>(new_lines(log, around, told));
  add_profiles(watch.processes(), read_phase_log(log_from(log, 0)), begin, profile);
  add_samples(watch.total(), begin, profile);
  if (options.callers) {
    callers.add_jumps(begin, profile);
    blocks.add_blocks(begin, profile);
  } else {
    add_jumps(watch.processes(), begin, profile);
  }
  finish_jumps(watch.processes(), profile);
  add_ended(profile);
  return end;
}

Result<CommandEnd> run_in_phase(const std::vector<std::string>& command, const std::string& name) {
  if (command.empty()) return make_error(ErrorCode::kInvalidArgument, "there is no command to run");
  const ProfiledPhase phase(name);
  return run_watched(command, [] {});
}

}  // namespace etstream
