// SPDX-License-Identifier: BSD-3-Clause
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "core/base/text.h"
#include "memory/profile/caller_watch.h"
#include "memory/profile/phase_log.h"
#include "memory/profile/phase_profiles.h"

namespace etstream {
namespace {

/// The time to wait for a stack, in nanoseconds: a thread may wait for a disk before it gets the signal.
constexpr std::uint64_t kPatience = 1'000'000'000;
constexpr std::size_t kMostMoments = 4096;
constexpr std::size_t kLongestStack = 65536;

std::uint64_t size_of(const Descriptor& file) {
  struct ::stat found {};
  return ::fstat(file.get(), &found) == 0 ? static_cast<std::uint64_t>(found.st_size) : 0;
}

/// Returns what was written to a file in these places, cut if it is long.
std::string dump_of(const Descriptor& file, std::uint64_t begin, std::uint64_t end) {
  std::string dump(std::min<std::uint64_t>(end - std::min(end, begin), kLongestStack), '\0');
  const ssize_t n = ::pread(file.get(), dump.data(), dump.size(), static_cast<off_t>(begin));
  dump.resize(static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  return dump;
}

/// Returns whether faulthandler has left out the outermost frames.
bool ends_cut(std::string_view dump) { return dump.ends_with("\n  ...\n"); }

int busy_thread_of(int process, const std::map<int, std::uint64_t>& before) {
  int busiest = process;
  std::uint64_t most = 0;
  for (const auto& [thread, time] : thread_times_of(process)) {
    const auto then = before.find(thread);
    std::uint64_t ran = time - (then != before.end() ? std::min(time, then->second) : 0);
    if (thread == process) ran *= 2;
    if (ran > most) {
      busiest = thread;
      most = ran;
    }
  }
  return busiest;
}

/// Returns whether a file has code that lies between a script and what it imports: Python's own, or that of
/// sitecustomize.py.
bool is_between(std::string_view file) {
  return file.starts_with("<frozen importlib") || file.ends_with("/python/sitecustomize.py") ||
         file.ends_with("/python/etstream_profile.py");
}

}  // namespace

std::vector<ProfileJump::Caller> read_stack(std::string_view dump) {
  constexpr std::string_view kFile = "  File \"";
  constexpr std::string_view kLine = "\", line ";
  constexpr std::string_view kIn = "in ";
  std::vector<ProfileJump::Caller> out;
  while (!dump.empty()) {
    std::string_view line = dump.substr(0, dump.find('\n'));
    dump.remove_prefix(std::min(line.size() + 1, dump.size()));
    const std::size_t number = line.rfind(kLine);
    if (!line.starts_with(kFile) || number == std::string_view::npos || number < kFile.size()) continue;
    ProfileJump::Caller caller;
    caller.file = line.substr(kFile.size(), number - kFile.size());
    line.remove_prefix(number + kLine.size());
    if (!take_numbers(line, caller.line) || caller.line < 0) caller.line = 0;
    if (line.starts_with(kIn)) caller.function = line.substr(kIn.size());
    if (!is_between(caller.file)) out.push_back(std::move(caller));
  }
  return out;
}

void CallerWatch::take(std::string_view lines) {
  unfinished_ += lines;
  std::string_view rest = unfinished_;
  for (std::size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
    if (rest.starts_with("C ")) add(rest.substr(2, end - 2));
    rest.remove_prefix(end + 1);
  }
  unfinished_.erase(0, unfinished_.size() - rest.size());
}

void CallerWatch::add(std::string_view line) {
  Told told;
  int file = -1;
  if (!take_numbers(line, told.process, file, told.signal) || told.process <= 0 || file < 0 ||
      told.signal < SIGRTMIN || told.signal > SIGRTMAX) {
    return;
  }
  told.file = Descriptor(::open(text("/proc/{}/fd/{}", told.process, file).c_str(), O_RDONLY | O_CLOEXEC));
  if (told.file) told_.push_back(std::move(told));
}

bool CallerWatch::awaits_outermost(Told& told, std::uint64_t now) {
  if (told.moments.empty()) return false;
  Moment& last = told.moments.back();
  const std::uint64_t written = size_of(told.file);
  const bool is_as_before = written == last.end;
  if (last.asked != 0) return is_as_before && now - last.asked < kPatience;
  if (!last.is_of_main || is_as_before) return false;
  last.end = written;
  if (!ends_cut(dump_of(told.file, last.begin, last.end))) return false;
  if (!catches(told.process, told.signal + 1)) return false;
  if (::syscall(SYS_tgkill, told.process, told.process, told.signal + 1) != 0) return false;
  last.asked = now;
  return true;
}

void CallerWatch::look(const std::vector<WatchedProcess>& processes, std::uint64_t now) {
  for (Told& told : told_) {
    const auto process = std::find_if(processes.rbegin(), processes.rend(), [&](const WatchedProcess& each) {
      return each.process == told.process;
    });
    if (process != processes.rend() && process->runs) look(told, process->anonymous + process->spilled, now);
  }
}

void CallerWatch::look(Told& told, std::uint64_t anonymous, std::uint64_t now) {
  // Memory from before the process could report its stack is no jump, and what its threads ran until then
  // does not tell which of them grows.
  if (told.most == 0) {
    told.most = anonymous;
    told.before = thread_times_of(told.process);
  }
  const bool awaits = awaits_outermost(told, now);
  const std::uint64_t step = step_over(told.most);
  if (anonymous < told.most + step) {
    // The threads that run from here on are the ones that grow.
    if (!told.is_halfway && anonymous >= told.most + step / 2) {
      told.before = thread_times_of(told.process);
      told.is_halfway = true;
    }
    return;
  }
  const std::uint64_t written = size_of(told.file);
  if (awaits) return;
  if (!told.moments.empty()) {
    const Moment& before = told.moments.back();
    if (written == before.begin && now - before.time < kPatience) return;
  }
  // After exec the signal would end the new program, which has no handler.
  if (told.moments.size() >= kMostMoments || !catches(told.process, told.signal)) return;
  const int thread = busy_thread_of(told.process, told.before);
  if (::syscall(SYS_tgkill, told.process, thread, told.signal) != 0) return;
  told.moments.push_back({.time = now,
                          .anonymous = anonymous,
                          .by = anonymous - told.most,
                          .begin = written,
                          .is_of_main = thread == told.process,
                          .end = written});
  told.most = anonymous;
  told.before = thread_times_of(told.process);
  told.is_halfway = false;
}

void CallerWatch::add_jumps(std::uint64_t begin, Profile& profile) const {
  if (told_.empty()) {
    profile.notes.emplace_back(
        "no Python was there to tell of its callers: none was run, or it does not look at PYTHONPATH (-I, "
        "-E, -S)");
  }
  for (const Told& told : told_) {
    for (std::size_t i = 0; i < told.moments.size(); ++i) {
      const Moment& moment = told.moments[i];
      const std::uint64_t end = i + 1 < told.moments.size() ? told.moments[i + 1].begin : size_of(told.file);
      const std::string dump = dump_of(told.file, moment.begin, end);
      profile.jumps.push_back({.process = told.process,
                               .phase = {},
                               .begin = seconds_between(begin, i > 0 ? told.moments[i - 1].time : begin),
                               .time = seconds_between(begin, moment.time),
                               .anonymous = moment.anonymous,
                               .by = moment.by,
                               .callers = read_stack(dump)});
    }
  }
}

}  // namespace etstream
