// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstddef>
#include <map>
#include <string_view>
#include <tuple>

#include "memory/profile/phase_profiles.h"

namespace etstream {
namespace {

constexpr std::size_t kMostJumps = 20;
constexpr std::uint64_t kSmallestJump = std::uint64_t{1} << 20;

/// Adds the times in which one process grew, each until its memory falls.
void add_growth(const WatchedProcess& process, std::uint64_t begin, Profile& profile) {
  const std::vector<MemorySample>& samples = process.memory.samples();
  // A forked process has not added what it began with.
  std::uint64_t before = samples.empty() ? 0 : std::min(process.inherited, samples.front().anonymous);
  std::uint64_t began = process.begin;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const bool ends = i + 1 == samples.size() || samples[i + 1].anonymous < samples[i].anonymous;
    if (!ends) continue;
    if (samples[i].anonymous >= before + kSmallestJump) {
      profile.jumps.push_back({.process = process.process,
                               .phase = {},
                               .begin = seconds_between(begin, began),
                               .time = seconds_between(begin, samples[i].time),
                               .anonymous = samples[i].anonymous,
                               .by = samples[i].anonymous - before,
                               .callers = {}});
    }
    if (i + 1 < samples.size())
      std::tie(before, began) = std::pair(samples[i + 1].anonymous, samples[i + 1].time);
  }
}

/// Returns whether a file is not the user's own: of Python itself, or of an installed package.
bool is_installed(std::string_view file) {
  constexpr std::string_view kFolders[] = {"/site-packages/", "/dist-packages/", "/lib/python"};
  return file.starts_with('<') || std::ranges::any_of(kFolders, [&](std::string_view folder) {
           return file.find(folder) != std::string_view::npos;
         });
}

void add_lines(Profile& profile) {
  std::map<std::tuple<std::string, std::int32_t, std::string>, ProfileLine> lines;
  for (const ProfileJump& jump : profile.jumps) {
    const auto own =
        std::ranges::find_if(jump.callers, [](const auto& each) { return !is_installed(each.file); });
    if (own == jump.callers.end()) continue;
    ProfileLine& line = lines[{own->file, own->line, own->function}];
    line.caller = *own;
    line.by += jump.by;
    ++line.jumps;
  }
  for (auto& [place, line] : lines) profile.lines.push_back(std::move(line));
  std::ranges::stable_sort(profile.lines, std::greater{}, &ProfileLine::by);
}

}  // namespace

void add_jumps(const std::vector<WatchedProcess>& processes, std::uint64_t begin, Profile& profile) {
  for (const WatchedProcess& process : processes) add_growth(process, begin, profile);
  std::ranges::stable_sort(profile.jumps, std::greater{}, &ProfileJump::by);
  if (profile.jumps.size() > kMostJumps) profile.jumps.resize(kMostJumps);
}

void finish_jumps(const std::vector<WatchedProcess>& processes, Profile& profile) {
  std::ranges::stable_sort(profile.jumps, {}, &ProfileJump::time);
  std::map<std::int32_t, std::vector<const PhaseProfile*>> of_process;
  for (const PhaseProfile& phase : profile.phases) of_process[phase.process].push_back(&phase);
  for (ProfileJump& jump : profile.jumps) {
    const auto last =
        std::ranges::find(processes.rbegin(), processes.rend(), jump.process, &WatchedProcess::process);
    if (last == processes.rend()) continue;
    for (const WatchedProcess* process = &*last; process != nullptr && jump.phase.empty();
         process = process->parent_at ? &processes[*process->parent_at] : nullptr) {
      const PhaseProfile* inner = nullptr;
      for (const PhaseProfile* phase : of_process[process->process]) {
        const bool is_in = phase->start <= jump.time && jump.time <= phase->start + phase->seconds;
        if (is_in && (inner == nullptr || phase->depth >= inner->depth)) inner = phase;
      }
      if (inner != nullptr) jump.phase = inner->name;
    }
  }
  add_lines(profile);
}

}  // namespace etstream
