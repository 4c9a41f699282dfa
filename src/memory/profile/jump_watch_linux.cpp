// SPDX-License-Identifier: BSD-3-Clause
#include "memory/profile/jump_watch.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <functional>
#include <map>
#include <span>
#include <utility>

#include "core/base/hashes.h"
#include "core/base/text.h"
#include "memory/profile/phase_log.h"
#include "memory/profile/phase_profiles.h"

namespace etstream {
namespace {

constexpr double kSoon = 0.2;                         // in seconds
constexpr std::uint64_t kBetweenLooks = 100'000'000;  // in nanoseconds
/// The bytes that are read behind the first page of a block, which may have a header, in the middle and at
/// the end.
constexpr std::size_t kSampledBytes = 4096;

/// Returns a hash of parts of a block in another process; 0 if they can't be read.
std::uint64_t sample(int process, std::uint64_t address, std::uint64_t size) {
  std::array<std::byte, 3 * kSampledBytes> bytes;
  const ::iovec here{.iov_base = bytes.data(), .iov_len = bytes.size()};
  std::array<::iovec, 3> there{};
  const std::array<std::uint64_t, 3> places{kSampledBytes, size / 2, size - kSampledBytes};
  for (std::size_t i = 0; i < there.size(); ++i) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): it is an address in another process.
    there[i] = {.iov_base = reinterpret_cast<void*>(address + places[i]), .iov_len = kSampledBytes};
  }
  const ssize_t n = ::process_vm_readv(process, &here, 1, there.data(), there.size(), 0);
  if (n != static_cast<ssize_t>(bytes.size())) return 0;
  ContentHasher hasher;
  hasher.update(bytes);
  std::uint64_t out = 0;
  std::memcpy(&out, hasher.hash().data(), sizeof(out));
  return out;
}

}  // namespace

void BlockWatch::look(const ProcessWatch& watch, const heap::LargeBlocks& blocks, std::uint64_t now) {
  std::uint64_t all = 0;
  std::uint64_t spilled = 0;
  for (const WatchedProcess& process : watch.processes()) {
    if (!process.runs) continue;
    all += process.anonymous + process.spilled;
    spilled += process.spilled;
  }
  // Blocks get their bytes after they come, so a look at the same height again sees more of them.
  const bool is_new = all >= most_ + most_ / 100 + 1 || (all >= most_ && now >= looked_ + kBetweenLooks);
  if (spilled < heap::LargeBlocks::kSmallest || !is_new) return;
  most_ = all;
  looked_ = now;
  blocks_.clear();
  for (const heap::LargeBlock& block : blocks.places) {
    const std::uint64_t address = block.address.load(std::memory_order_acquire);
    const std::int32_t process = block.process.load(std::memory_order_relaxed);
    const std::uint64_t size = block.size.load(std::memory_order_relaxed);
    if (address <= 1 || size < heap::LargeBlocks::kSmallest || !watch.runs(process)) continue;
    blocks_.push_back(
        {process, size, block.born.load(std::memory_order_relaxed), sample(process, address, size)});
  }
}

void BlockWatch::add_blocks(std::uint64_t begin, Profile& profile) const {
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t> alike;  // by size and samples
  for (const Block& block : blocks_) ++alike[{block.size, block.samples}];
  std::map<std::pair<std::int32_t, const ProfileJump*>, ProfileBlocks> of_jump;
  for (const Block& block : blocks_) {
    // A jump is told of soon after the memory has come. A later one names what ran next.
    const double born = seconds_between(begin, block.born);
    const auto jump = std::ranges::find_if(profile.jumps, [&](const ProfileJump& each) {
      return each.process == block.process && each.time >= born && each.time <= born + kSoon;
    });
    const bool is_known = jump != profile.jumps.end();
    ProfileBlocks& made = of_jump[{block.process, is_known ? &*jump : nullptr}];
    made.process = block.process;
    if (is_known) made.callers = jump->callers;
    made.size += block.size;
    ++made.blocks;
    if (block.samples != 0 && alike[{block.size, block.samples}] > 1) made.repeated += block.size;
  }
  for (auto& each : of_jump) {
    ProfileBlocks& made = each.second;
    const auto known = std::ranges::find_if(profile.blocks, [&made](const ProfileBlocks& other) {
      return other.process == made.process && other.callers == made.callers;
    });
    if (known == profile.blocks.end()) {
      profile.blocks.push_back(std::move(made));
      continue;
    }
    known->size += made.size;
    known->blocks += made.blocks;
    known->repeated += made.repeated;
  }
  std::ranges::stable_sort(profile.blocks, std::greater{}, &ProfileBlocks::size);
}

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
  for_each_line(lines, [&](std::string_view line) {
    if (line.starts_with("C ")) add(line.substr(2));
  });
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
