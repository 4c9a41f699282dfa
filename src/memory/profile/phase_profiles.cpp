// SPDX-License-Identifier: BSD-3-Clause
#include "memory/profile/phase_profiles.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include "core/base/text.h"

namespace etstream {
namespace {

/// A process. Phases cut its time into pieces, each of which counts for all phases that it lies in.
class ProcessTimeline {
 public:
  ProcessTimeline(const WatchedProcess& process, std::uint64_t begin, Profile& profile)
      : process_(process), begin_(begin), profile_(profile) {}

  /// Adds the phases. Returns when the process ended.
  std::uint64_t run(const std::vector<PhaseEvent>& events) {
    const PhaseEvent* before = nullptr;
    for (const PhaseEvent& event : events) {
      end_piece(before, event.time, &event);
      if (event.begins) {
        open(event);
      } else {
        close(event);
      }
      if (!event.was_reset) can_reset_ = false;
      before = &event;
    }
    const std::uint64_t end = std::max(process_.end, before != nullptr ? before->time : process_.begin);
    end_piece(before, end, nullptr);
    for (const Open& phase : open_) {
      PhaseProfile& profile = profile_.phases[phase.index];
      profile.seconds = seconds_between(begin_, end) - profile.start;
      profile.cpu_seconds =
          std::max(process_.work.cpu_seconds - static_cast<double>(phase.begin->cpu) / 1e9, 0.0);
      profile.ended = false;
    }
    raise_to(profile_.peak, process_peak_);
    if (!can_reset_) {
      profile_.notes.push_back(
          text("process {}: the kernel does not let high-water marks be reset (clear_refs); the "
               "peaks of its phases are those of the samples",
               process_.process));
    }
    return end;
  }

  void add_process(std::uint64_t end) {
    profile_.processes.push_back({.process = process_.process,
                                  .parent = process_.parent,
                                  .command = process_.command,
                                  .start = seconds_between(begin_, process_.begin),
                                  .seconds = seconds_between(process_.begin, end),
                                  .cpu_seconds = process_.work.cpu_seconds,
                                  .peak = process_peak_,
                                  .last_anonymous = process_.anonymous,
                                  .read = process_.work.read,
                                  .written = process_.work.written});
  }

 private:
  struct Open {
    std::size_t index = 0;
    const PhaseEvent* begin = nullptr;
  };

  /// Ends a piece that lasted from `before` to `event`; null stands for the begin or end of the process.
  void end_piece(const PhaseEvent* before, std::uint64_t end, const PhaseEvent* event) {
    const std::uint64_t begin = before != nullptr ? before->time : process_.begin;
    ProcessMemory seen = process_.memory.most(begin, end);
    // If the mark was not reset at the beginning of the piece, it may be of an earlier one.
    const bool is_marked = before == nullptr || before->was_reset;
    const std::uint64_t mark = event != nullptr ? event->memory.high_water : seen.high_water;
    if (before != nullptr) seen.raise_to(before->memory);
    if (event != nullptr) seen.raise_to(event->memory);
    PeakMemory peak{seen.resident, seen.anonymous, seen.file};
    if (is_marked) raise_to_mark(peak, mark);
    raise_to(process_peak_, peak);
    const MemorySample below = process_.with_descendants.most(begin, end);
    PeakMemory with_descendants{below.resident, below.anonymous, below.file};
    raise_to(with_descendants, peak);
    // One of those may have been too short to be seen.
    if (before != nullptr && event != nullptr && event->below > before->below)
      raise_to_mark(with_descendants, event->below);
    for (const Open& phase : open_) {
      raise_to(profile_.phases[phase.index].peak, peak);
      raise_to(profile_.phases[phase.index].with_descendants, with_descendants);
    }
  }

  void open(const PhaseEvent& event) {
    PhaseProfile phase;
    phase.name = event.name;
    phase.process = event.process;
    phase.depth = static_cast<std::uint32_t>(std::count_if(
        open_.begin(), open_.end(), [&](const Open& each) { return each.begin->thread == event.thread; }));
    phase.start = seconds_between(begin_, event.time);
    phase.anonymous_before = event.memory.anonymous;
    open_.push_back({profile_.phases.size(), &event});
    profile_.phases.push_back(std::move(phase));
  }

  /// Closes the phase that the thread began last.
  void close(const PhaseEvent& event) {
    const auto last = std::find_if(open_.rbegin(), open_.rend(),
                                   [&](const Open& each) { return each.begin->thread == event.thread; });
    if (last == open_.rend()) return;
    PhaseProfile& phase = profile_.phases[last->index];
    const PhaseEvent& begin = *last->begin;
    phase.seconds = seconds_between(begin.time, event.time);
    phase.cpu_seconds = seconds_between(begin.cpu, event.cpu);
    phase.read = event.read - std::min(event.read, begin.read);
    phase.written = event.written - std::min(event.written, begin.written);
    open_.erase(std::next(last).base());
  }

  const WatchedProcess& process_;
  const std::uint64_t begin_;
  Profile& profile_;
  std::vector<Open> open_;
  PeakMemory process_peak_;
  bool can_reset_ = true;
};

/// Raises the phases in which a process lived, of those above it, to its peak: a spike of its own may not be
/// in the samples.
void raise_phases_above(const std::vector<WatchedProcess>& processes, std::uint64_t begin, Profile& profile) {
  std::map<std::int32_t, std::vector<PhaseProfile*>> of_process;
  for (PhaseProfile& phase : profile.phases) of_process[phase.process].push_back(&phase);
  for (std::size_t i = 0; i < processes.size(); ++i) {
    const double start = seconds_between(begin, processes[i].begin);
    const double end = seconds_between(begin, processes[i].end);
    for (auto above = processes[i].parent_at; above; above = processes[*above].parent_at) {
      for (PhaseProfile* phase : of_process[processes[*above].process]) {
        if (start < phase->start || end > phase->start + phase->seconds) continue;
        raise_to(phase->with_descendants, profile.processes[i].peak);
      }
    }
  }
}

}  // namespace

double seconds_between(std::uint64_t begin, std::uint64_t end) {
  return end > begin ? static_cast<double>(end - begin) / 1e9 : 0;
}

void raise_to(PeakMemory& peak, const PeakMemory& other) {
  peak.resident = std::max(peak.resident, other.resident);
  peak.anonymous = std::max(peak.anonymous, other.anonymous);
  peak.file = std::max(peak.file, other.file);
}

void raise_to_mark(PeakMemory& peak, std::uint64_t high_water) {
  if (high_water <= peak.resident) return;
  peak.anonymous += high_water - peak.resident;
  peak.resident = high_water;
}

void add_profiles(const std::vector<WatchedProcess>& processes, std::vector<PhaseEvent> events,
                  std::uint64_t begin, Profile& profile) {
  std::stable_sort(events.begin(), events.end(),
                   [](const PhaseEvent& a, const PhaseEvent& b) { return a.time < b.time; });
  std::map<std::int32_t, std::vector<PhaseEvent>> of_process;
  for (PhaseEvent& event : events) of_process[event.process].push_back(std::move(event));
  for (const WatchedProcess& process : processes) {
    // A later process may have the same number.
    std::vector<PhaseEvent>& own = of_process[process.process];
    const std::uint64_t last = process.end + 1'000'000'000U;
    const auto later = std::ranges::find_if(
        own, [&](const PhaseEvent& event) { return event.time > last && !process.runs; });
    std::vector<PhaseEvent> others(later, own.end());
    own.erase(later, own.end());
    ProcessTimeline timeline(process, begin, profile);
    timeline.add_process(timeline.run(own));
    own = std::move(others);
  }
  // A process may have been too short to be seen.
  for (const auto& [process, told] : of_process) {
    if (told.empty()) continue;
    WatchedProcess unseen;
    unseen.process = process;
    unseen.begin = unseen.end = told.front().time;
    ProcessTimeline(unseen, begin, profile).run(told);
  }
  raise_phases_above(processes, begin, profile);
  std::stable_sort(profile.phases.begin(), profile.phases.end(),
                   [](const PhaseProfile& a, const PhaseProfile& b) { return a.start < b.start; });
}

Result<std::optional<Excess>> find_excess(const Profile& profile, std::uint64_t limit,
                                          const std::string& name) {
  Excess most;
  bool is_known = name.empty();
  if (name.empty()) most.anonymous = profile.peak.anonymous;
  std::uint64_t largest = 0;
  const auto highest = std::ranges::max_element(profile.samples, {}, &ProfileSample::anonymous);
  for (const PhaseProfile& phase : profile.phases) {
    if (!name.empty() && phase.name != name) continue;
    is_known = true;
    const std::uint64_t anonymous = phase.with_descendants.anonymous;
    // Several processes together may use more than any phase, of those that ran then.
    const bool was_there = !name.empty() || anonymous >= profile.peak.anonymous ||
                           (highest != profile.samples.end() && phase.start <= highest->time &&
                            highest->time <= phase.start + phase.seconds);
    if (!was_there || anonymous < largest) continue;
    // If several phases have the same peak, the innermost says most.
    if (anonymous == largest && most.phase != nullptr && phase.depth < most.phase->depth) continue;
    most = {&phase, std::max(most.anonymous, anonymous)};
    largest = anonymous;
  }
  if (!is_known) {
    std::set<std::string> names;
    for (const PhaseProfile& phase : profile.phases) names.insert(phase.name);
    return make_error(ErrorCode::kNotFound, "there was no phase {}, but {}", quote(name), names_text(names));
  }
  if (most.anonymous <= limit) return std::optional<Excess>();
  return std::optional(most);
}

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
