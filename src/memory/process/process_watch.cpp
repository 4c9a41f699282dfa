// SPDX-License-Identifier: BSD-3-Clause
#include "memory/process/process_watch.h"

#include <algorithm>
#include <utility>

namespace etstream {
namespace {

constexpr unsigned kFirstLooks = 50;
constexpr unsigned kLookForNewEvery = 5;
constexpr unsigned kReadCommandEvery = 25;
constexpr std::uint64_t kYoung = 250'000'000;  // until then a process may call exec, in nanoseconds
constexpr std::uint64_t kLeastShared = std::uint64_t{1} << 20;
/// The kernel is asked for shares a fifth of the time at most: it walks all pages.
constexpr std::uint64_t kRestAfterShares = 4;

bool may_call_exec(const WatchedProcess& process, std::uint64_t now) {
  return process.is_copy && now - process.begin < kYoung;
}

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

bool ProcessWatch::runs(int process) const noexcept { return place_of(process).has_value(); }

bool ProcessWatch::has_seen(int process) const noexcept {
  return std::ranges::find(processes_, process, &WatchedProcess::process) != processes_.end();
}

void ProcessWatch::look(int root, std::uint64_t now, const std::map<int, std::uint64_t>& spilled,
                        const std::function<std::optional<std::uint64_t>()>& shared) {
  const bool is_thorough = looks_ < kFirstLooks || looks_ % kLookForNewEvery == 0;
  const bool reads_commands = looks_ % kReadCommandEvery == 0;
  ++looks_;
  if (is_thorough) find_children(root, std::nullopt, now);
  std::uint64_t all_spilled = 0;
  std::vector<ProcessMemory> seen(processes_.size());
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    WatchedProcess& each = processes_[i];
    if (!each.runs) continue;
    const auto memory = memory_of(each.process);
    if (!memory) {
      each.runs = false;
      continue;
    }
    seen[i] = *memory;
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
    if (!each.is_copy) continue;
    each.is_copy = is_copy(each.process);
    if (!each.is_copy) {
      each.of_others = {};
      each.inherited = 0;
    } else if (each.begin == now && each.parent_at) {
      each.of_others = *memory;
      each.inherited = std::min(memory->anonymous, seen[*each.parent_at].anonymous);
      each.of_others.anonymous = each.inherited;
    }
  }
  find_shares(seen, now);
  std::vector<MemorySample> below(processes_.size(), MemorySample{{}, now});
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    WatchedProcess& each = processes_[i];
    if (!each.runs) continue;
    below[i].add(seen[i]);
    below[i].leave_out(each.of_others);
    // Between vfork and exec its memory is its parent's.
    if (!may_call_exec(each, now)) each.memory.add({seen[i], now});
  }
  // This is read last: memory that was given back meanwhile must not seem to be there without a process.
  add_sums(std::move(below), shared ? shared() : std::nullopt, all_spilled, now);
}

void ProcessWatch::find_shares(const std::vector<ProcessMemory>& seen, std::uint64_t now) {
  // Memory is shared by those that forked or were forked, and by those that map shared memory.
  std::vector<bool> shares(processes_.size());
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    const WatchedProcess& each = processes_[i];
    if (!each.runs || may_call_exec(each, now)) continue;
    if (seen[i].shared >= kLeastShared) shares[i] = true;
    if (each.is_copy && each.parent_at) shares[i] = shares[*each.parent_at] = true;
  }
  const bool asks = std::ranges::count(shares, true) > 1;
  if (asks && now < next_shares_) return;
  const std::uint64_t begin = nanoseconds_of(CLOCK_MONOTONIC);
  std::vector<ProcessMemory> own = seen;
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    WatchedProcess& each = processes_[i];
    shares[i] = shares[i] && asks && each.runs && seen[i].anonymous >= kLeastShared;
    if (shares[i]) own[i] = share_of(each.process).value_or(seen[i]);
    if (!may_call_exec(each, now)) each.of_others = {};
  }
  // Others have a larger share of what a process has given back meanwhile, as when it ended.
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    if (!shares[i]) continue;
    const ProcessMemory left = memory_of(processes_[i].process).value_or(ProcessMemory());
    own[i].anonymous = std::min(own[i].anonymous, left.anonymous);
    own[i].shared = std::min(own[i].shared, left.shared);
    processes_[i].of_others = seen[i];
    processes_[i].of_others.leave_out(own[i]);
  }
  if (asks) next_shares_ = now + kRestAfterShares * (nanoseconds_of(CLOCK_MONOTONIC) - begin);
}

void ProcessWatch::add_sums(std::vector<MemorySample> sums, std::optional<std::uint64_t> shared,
                            std::uint64_t spilled, std::uint64_t now) {
  std::uint64_t mapped = 0;
  for (const MemorySample& sum : sums) mapped += sum.shared;
  std::uint64_t unmapped = shared.value_or(0) - std::min(shared.value_or(0), mapped);
  if (unmapped < kLeastShared) unmapped = 0;
  const auto counted = [&](MemorySample sum) {
    // Others may have mapped before what a process maps anew.
    const std::uint64_t twice = sum.shared - std::min(sum.shared, shared.value_or(sum.shared));
    sum.resident -= twice;
    sum.anonymous += unmapped - twice;
    return sum;
  };
  MemorySample total{{}, now, spilled};
  for (std::size_t i = processes_.size(); i-- > 0;) {
    WatchedProcess& each = processes_[i];
    MemorySample& parent = each.parent_at ? sums[*each.parent_at] : total;
    parent.add(sums[i]);
    if (each.parent_at) processes_[*each.parent_at].has_children = true;
    if (each.runs && (each.has_children || unmapped != 0)) each.with_descendants.add(counted(sums[i]));
  }
  total_.add(counted(total));
}

}  // namespace etstream
