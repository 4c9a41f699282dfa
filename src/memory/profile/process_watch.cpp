// SPDX-License-Identifier: BSD-3-Clause
#include "memory/profile/process_watch.h"

#include <algorithm>
#include <utility>

namespace etstream {
namespace {

constexpr unsigned kFirstLooks = 50;
constexpr unsigned kLookForNewEvery = 5;
constexpr unsigned kReadCommandEvery = 25;
constexpr std::uint64_t kYoung = 250'000'000;  // until then a process may call exec, in nanoseconds

}  // namespace

void ProcessWatch::find_children(int parent, std::uint64_t now) {
  for (const int child : children_of(parent)) {
    if (!runs(child)) {
      WatchedProcess& found = processes_.emplace_back();
      found.process = child;
      found.parent = parent;
      found.begin = found.end = now;
    }
    find_children(child, now);
  }
}

bool ProcessWatch::is_copy_of_parent(const WatchedProcess& child) const {
  return std::any_of(processes_.begin(), processes_.end(), [&](const WatchedProcess& each) {
    return each.process == child.parent && each.command == child.command;
  });
}

bool ProcessWatch::runs(int process) const noexcept {
  return std::any_of(processes_.begin(), processes_.end(),
                     [&](const WatchedProcess& each) { return each.runs && each.process == process; });
}

void ProcessWatch::look(int root, std::uint64_t now, const std::function<std::uint64_t()>& spilled) {
  const bool is_thorough = looks_ < kFirstLooks || looks_ % kLookForNewEvery == 0;
  const bool reads_commands = looks_ % kReadCommandEvery == 0;
  ++looks_;
  if (is_thorough) find_children(root, now);
  MemorySample total{{}, now};
  for (WatchedProcess& each : processes_) {
    if (!each.runs) continue;
    const auto memory = memory_of(each.process);
    if (!memory) {
      each.runs = false;
      continue;
    }
    each.end = now;
    each.anonymous = memory->anonymous;
    if (is_thorough) {
      if (reads_commands || now - each.begin < kYoung) {
        if (std::string command = command_line_of(each.process); !command.empty())
          each.command = std::move(command);
      }
      if (const auto work = work_of(each.process)) each.work = *work;
    }
    // Between fork and exec its memory is its parent's.
    if (now - each.begin < kYoung && is_copy_of_parent(each)) continue;
    each.memory.add({*memory, now});
    total.resident += memory->resident;
    total.anonymous += memory->anonymous;
    total.file += memory->file;
  }
  total.spilled = spilled();
  total_.add(total);
}

}  // namespace etstream
