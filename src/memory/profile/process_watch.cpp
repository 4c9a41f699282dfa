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

void ProcessWatch::find_children(int parent, std::optional<std::size_t> place, std::uint64_t now) {
  for (const int child : children_of(parent)) {
    std::optional<std::size_t> known = place_of(child);
    if (!known) {
      // A process that has ended stays a child until its parent waits for it.
      if (has_seen(child) && !memory_of(child)) continue;
      known = processes_.size();
      WatchedProcess& found = processes_.emplace_back();
      found.process = child;
      found.parent = parent;
      found.parent_at = place;
      found.begin = found.end = now;
    }
    find_children(child, known, now);
  }
}

std::optional<std::size_t> ProcessWatch::place_of(int process) const noexcept {
  const auto found = std::ranges::find_if(
      processes_, [&](const WatchedProcess& each) { return each.runs && each.process == process; });
  if (found == processes_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - processes_.begin());
}

bool ProcessWatch::is_copy_of_parent(const WatchedProcess& child) const {
  return std::any_of(processes_.begin(), processes_.end(), [&](const WatchedProcess& each) {
    return each.process == child.parent && each.command == child.command;
  });
}

bool ProcessWatch::runs(int process) const noexcept { return place_of(process).has_value(); }

bool ProcessWatch::has_seen(int process) const noexcept {
  return std::ranges::find(processes_, process, &WatchedProcess::process) != processes_.end();
}

void ProcessWatch::look(int root, std::uint64_t now, const std::map<int, std::uint64_t>& spilled) {
  const bool is_thorough = looks_ < kFirstLooks || looks_ % kLookForNewEvery == 0;
  const bool reads_commands = looks_ % kReadCommandEvery == 0;
  ++looks_;
  if (is_thorough) find_children(root, std::nullopt, now);
  std::uint64_t all_spilled = 0;
  std::vector<MemorySample> below(processes_.size(), MemorySample{{}, now});
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    WatchedProcess& each = processes_[i];
    if (!each.runs) continue;
    const auto memory = memory_of(each.process);
    if (!memory) {
      each.runs = false;
      continue;
    }
    each.end = now;
    each.anonymous = memory->anonymous;
    const auto in_heap = spilled.find(each.process);
    each.spilled = in_heap != spilled.end() ? in_heap->second : 0;
    all_spilled += each.spilled;
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
    below[i].add(*memory);
  }
  add_sums(std::move(below), all_spilled, now);
}

void ProcessWatch::add_sums(std::vector<MemorySample> sums, std::uint64_t spilled, std::uint64_t now) {
  MemorySample total{{}, now, spilled};
  for (std::size_t i = processes_.size(); i-- > 0;) {
    WatchedProcess& each = processes_[i];
    MemorySample& parent = each.parent_at ? sums[*each.parent_at] : total;
    parent.add(sums[i]);
    if (each.parent_at) processes_[*each.parent_at].has_children = true;
    if (each.runs && each.has_children) each.with_descendants.add(sums[i]);
  }
  total_.add(total);
}

}  // namespace etstream
