// SPDX-License-Identifier: BSD-3-Clause
//
// Profiles as JSON, as a page and as text.
#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/text.h"
#include "pages_generated.h"
#include "present/print.h"
#include "present/reports.h"

namespace etstream {

// Json finds these by their arguments, so they are in no namespace of their own.
ETSTREAM_TO_JSON(PeakMemory, peak, peak.resident, peak.anonymous, peak.file);

ETSTREAM_TO_JSON(PhaseProfile, phase, phase.name, phase.process, phase.depth, phase.start, phase.seconds,
                 phase.cpu_seconds, phase.anonymous_before, phase.peak, phase.with_descendants, phase.read,
                 phase.written, phase.ended);

ETSTREAM_TO_JSON(ProcessProfile, process, process.process, process.parent, process.command, process.start,
                 process.seconds, process.cpu_seconds, process.peak, process.last_anonymous, process.read,
                 process.written);

ETSTREAM_TO_JSON(ProfileJump::Caller, caller, caller.function, caller.file, caller.line);

ETSTREAM_TO_JSON(ProfileJump, jump, jump.process, jump.phase, jump.begin, jump.time, jump.anonymous, jump.by,
                 jump.callers);

ETSTREAM_TO_JSON(ProfileLine, line, line.caller.function, line.caller.file, line.caller.line, line.by,
                 line.jumps);

ETSTREAM_TO_JSON(ProfileBlocks, blocks, blocks.process, blocks.callers, blocks.size, blocks.blocks,
                 blocks.repeated);

/// Returns the samples as a list for each of their members.
static Json columns_of(const std::vector<ProfileSample>& samples) {
  const auto column = [&](auto member) {
    Json out = Json::list();
    for (const ProfileSample& sample : samples) out.push_back(sample.*member);
    return out;
  };
  return {{"time", column(&ProfileSample::time)},
          {"anonymous", column(&ProfileSample::anonymous)},
          {"file", column(&ProfileSample::file)},
          {"spilled", column(&ProfileSample::spilled)}};
}

Json profile_to_json(const Profile& profile) {
  Json out = ETSTREAM_MEMBERS(profile.command, profile.end.exit_code, profile.end.signal, profile.seconds,
                              profile.cpu_seconds, profile.peak, profile.spilled, profile.page_cache_growth,
                              profile.cgroup_growth, profile.cgroup_limit, profile.cgroup_kills,
                              profile.phases, profile.processes);
  out.add("samples", columns_of(profile.samples));
  out.update(ETSTREAM_MEMBERS(profile.jumps, profile.lines, profile.blocks, profile.notes));
  return out;
}

std::string profile_page(const std::string& profile, const std::string* before,
                         const std::vector<std::uint64_t>& limits, const std::vector<std::string>& verdict) {
  const auto value_of = [](std::string_view json) {
    return Json::of_text(json.substr(0, json.rfind('}') + 1));
  };
  Json shown = value_of(profile);
  if (before != nullptr) shown.add("before", value_of(*before));
  shown.update({{"limits", limits}, {"verdict", verdict}});
  return filled_page(kProfilePage, json_text(shown));
}

namespace {

constexpr std::size_t kMostPhases = 60;
constexpr std::size_t kMostJumps = 5;
constexpr std::size_t kMostProcesses = 5;
constexpr std::uint64_t kSmallestProcess = std::uint64_t{1} << 20;
constexpr std::size_t kMostLines = 8;
// The callers that are shown of a stack: the code that allocated, and the part of the script that led there.
constexpr std::size_t kInnermostCallers = 8;
constexpr std::size_t kOutermostCallers = 4;
// The parts that are shown of a long command: a compiler's source is at its end.
constexpr std::size_t kBeginOfCommand = 50;
constexpr std::size_t kEndOfCommand = 60;

std::uint64_t added(const PhaseProfile& phase) {
  return phase.peak.anonymous - std::min(phase.peak.anonymous, phase.anonymous_before);
}

std::string indented(const std::string& name, std::uint32_t depth) {
  return std::string(2 * std::size_t{depth}, ' ') + name;
}

std::string shortened(const std::string& command) {
  if (command.size() <= kBeginOfCommand + kEndOfCommand + 5) return command;
  return text("{} ... {}", command.substr(0, kBeginOfCommand),
              command.substr(command.size() - kEndOfCommand));
}

std::string words_of(const ProfileJump::Caller& caller) {
  return printable(text("{}, {}:{}", caller.function, caller.file, caller.line));
}

void print_phases(const std::vector<PhaseProfile>& phases) {
  if (phases.empty()) return;
  complain("  {:36} {:>8} {:>10} {:>10} {:>10} {:>10} {:>9}\n", "phase", "process", "anonymous", "own",
           "added", "resident", "seconds");
  for (std::size_t i = 0; i < phases.size() && i < kMostPhases; ++i) {
    const PhaseProfile& phase = phases[i];
    complain("  {:36} {:>8} {:>10} {:>10} {:>10} {:>10} {:9.1f}\n",
             indented(phase.name + (phase.ended ? "" : " ..."), phase.depth), phase.process,
             readable_size(phase.with_descendants.anonymous), readable_size(phase.peak.anonymous),
             readable_size(added(phase)), readable_size(phase.with_descendants.resident), phase.seconds);
  }
  if (phases.size() > kMostPhases)
    complain("  ... and {}\n", counted(phases.size() - kMostPhases, "more phase"));
}

void print_processes(const std::vector<ProcessProfile>& processes) {
  if (processes.size() < 2) return;
  std::vector<const ProcessProfile*> largest;
  largest.reserve(processes.size());
  for (const ProcessProfile& process : processes) largest.push_back(&process);
  std::ranges::stable_sort(largest, std::greater{}, [](const auto* each) { return each->peak.anonymous; });
  if (largest.size() > kMostProcesses) largest.resize(kMostProcesses);
  std::erase_if(largest, [](const auto* each) { return each->peak.anonymous < kSmallestProcess; });
  if (largest.empty()) return;
  complain("  the largest processes:\n");
  for (const ProcessProfile* process : largest) {
    complain("  {:>10} {:>8} {}\n", readable_size(process->peak.anonymous), process->process,
             printable(shortened(process->command)));
  }
}

void print_callers(const std::vector<ProfileJump::Caller>& callers) {
  const bool is_cut = callers.size() > kInnermostCallers + kOutermostCallers + 1;
  const std::size_t left_out = is_cut ? callers.size() - kInnermostCallers - kOutermostCallers : 0;
  for (std::size_t i = 0; i < callers.size(); ++i) {
    if (is_cut && i == kInnermostCallers) {
      complain("             ... and {}\n", counted(left_out, "caller"));
      i += left_out;
    }
    complain("             {}\n", words_of(callers[i]));
  }
}

/// Prints the largest jumps: with callers, the sums of those of one process that have the same callers.
void print_jumps(const std::vector<ProfileJump>& jumps) {
  struct Sum {
    std::uint64_t by = 0;
    const ProfileJump* last = nullptr;
  };
  std::vector<Sum> largest;
  for (const ProfileJump& jump : jumps) {
    if (jump.callers.empty() && jump.phase.empty() && jumps.size() == 1) continue;
    const auto known = std::ranges::find_if(largest, [&](const Sum& sum) {
      return !jump.callers.empty() && sum.last->process == jump.process && sum.last->callers == jump.callers;
    });
    if (known == largest.end()) {
      largest.push_back({jump.by, &jump});
    } else {
      *known = {known->by + jump.by, &jump};
    }
  }
  std::ranges::stable_sort(largest, std::greater{}, &Sum::by);
  for (std::size_t i = 0; i < largest.size() && i < kMostJumps; ++i) {
    const ProfileJump& jump = *largest[i].last;
    const std::string in_phase = jump.phase.empty() ? "" : text(", in phase {}", quote(jump.phase));
    complain("  {:>10} were added by process {}{}\n", readable_size(largest[i].by), jump.process, in_phase);
    print_callers(jump.callers);
  }
}

void print_lines(const std::vector<ProfileLine>& lines) {
  if (lines.empty()) return;
  complain("  added at lines of the script, and what they call:\n");
  for (std::size_t i = 0; i < lines.size() && i < kMostLines; ++i) {
    complain("  {:>10}  {}\n", readable_size(lines[i].by), words_of(lines[i].caller));
  }
}

/// Prints what was in use at the peak, by the innermost callers.
void print_blocks(const std::vector<ProfileBlocks>& blocks) {
  if (blocks.empty()) return;
  complain("  in use at the peak, in blocks of 1 MiB and more:\n");
  for (std::size_t i = 0; i < blocks.size() && i < kMostJumps; ++i) {
    const ProfileBlocks& made = blocks[i];
    const std::string repeated =
        made.repeated == 0 ? ""
                           : text(", {} of it in blocks that look like others", readable_size(made.repeated));
    complain("  {:>10} in {}{}, made by process {}{}\n", readable_size(made.size),
             counted(made.blocks, "block"), repeated, made.process,
             made.callers.empty() ? " when nothing told of callers" : "");
    print_callers(made.callers);
  }
}

std::string change(std::uint64_t before, std::uint64_t after) {
  return after >= before ? "+" + readable_size(after - before) : "-" + readable_size(before - after);
}

/// The cells of a comparison: of a phase, or of the command.
struct Compared {
  std::string name;
  std::string before = "-";
  std::string after = "-";
  std::string change = {};
  std::string seconds_before = "-";
  std::string seconds_after = "-";
};

template <class Measured>
Compared cells_of(std::string name, const Measured* before, const Measured* after,
                  std::uint64_t (*figure)(const Measured&)) {
  Compared out{.name = std::move(name)};
  if (before != nullptr) {
    out.before = readable_size(figure(*before));
    out.seconds_before = text("{:.1f}", before->seconds);
  }
  if (after != nullptr) {
    out.after = readable_size(figure(*after));
    out.seconds_after = text("{:.1f}", after->seconds);
  }
  if (before != nullptr && after != nullptr) out.change = change(figure(*before), figure(*after));
  return out;
}

std::vector<Compared> compared(const Profile& before, const Profile& after) {
  std::vector<Compared> out;
  out.push_back(
      cells_of<Profile>("all", &before, &after, [](const Profile& one) { return one.peak.anonymous; }));
  for (const ComparedPhase& phase : compare_phases(before, after)) {
    out.push_back(
        cells_of<PhaseProfile>(indented(phase.name, phase.depth), phase.before, phase.after,
                               [](const PhaseProfile& one) { return one.with_descendants.anonymous; }));
  }
  return out;
}

std::string words_of_signal(int signal) {
  const char* const meaning = ::strsignal(signal);
  return text("signal {} ({}) ended the command", signal, meaning != nullptr ? meaning : "?");
}

/// Returns a cell of a Markdown table: a name may hold what would end it.
std::string cell_of(const std::string& words) {
  std::string out;
  for (const char c : words) {
    if (std::strchr("\\|<>&*_`[]", c) != nullptr) out += '\\';
    out += c;
  }
  return printable(out);
}

}  // namespace

std::string failure_of(const Profile& profile) {
  const CommandEnd& end = profile.end;
  if (end.signal == 0 && end.exit_code == 0) return {};
  if (profile.cgroup_kills != 0) return "killed by the kernel at its cgroup's limit";
  return end.signal != 0 ? words_of_signal(end.signal)
                         : text("the command failed with exit code {}", end.exit_code);
}

std::string end_of_command(const Profile& profile) {
  const bool was_killed = profile.end.signal != 0;
  if (!was_killed && profile.cgroup_kills == 0) return {};
  std::string out = was_killed ? words_of_signal(profile.end.signal) : "";
  if (profile.cgroup_kills != 0) {
    out += text(
        "{}the kernel killed {} at the limit of the control group, {}", out.empty() ? "" : "; ",
        profile.cgroup_kills == 1 ? std::string("1 process") : text("{} processes", profile.cgroup_kills),
        profile.cgroup_limit != 0 ? readable_size(profile.cgroup_limit) : "which is not told");
  }
  const PhaseProfile* last = nullptr;
  for (const PhaseProfile& phase : profile.phases) {
    if (!phase.ended && (last == nullptr || phase.depth >= last->depth)) last = &phase;
  }
  if (last != nullptr)
    out += text("; phase {} of process {} had not ended", quote(last->name), last->process);
  const auto largest = std::ranges::max_element(profile.processes, {}, &ProcessProfile::last_anonymous);
  if (largest != profile.processes.end() && largest->last_anonymous != 0) {
    out += text("; process {} had {} of anonymous memory when it was seen last: {}", largest->process,
                readable_size(largest->last_anonymous), printable(shortened(largest->command)));
  }
  return out;
}

void print_profile(const Profile& profile) {
  complain("etstream profile: {:.1f} s, {:.1f} s of CPU, {} process{}\n", profile.seconds,
           profile.cpu_seconds, profile.processes.size(), profile.processes.size() == 1 ? "" : "es");
  complain("  at most: {} anonymous, {} resident", readable_size(profile.peak.anonymous),
           readable_size(profile.peak.resident));
  if (profile.spilled != 0) complain(", {} spilled", readable_size(profile.spilled));
  if (profile.cgroup_limit != 0)
    complain(", of {} that the control group may have", readable_size(profile.cgroup_limit));
  complain("; the page cache grew by {}", readable_size(profile.page_cache_growth));
  if (profile.cgroup_growth != 0) complain(", the control group by {}", readable_size(profile.cgroup_growth));
  complain("\n");
  if (const std::string end = end_of_command(profile); !end.empty()) complain("  {}\n", end);
  print_phases(profile.phases);
  print_processes(profile.processes);
  print_jumps(profile.jumps);
  print_lines(profile.lines);
  print_blocks(profile.blocks);
  for (const std::string& note : profile.notes) complain("  note: {}\n", note);
}

void print_comparison(const Profile& before, const Profile& after) {
  say("{:36} {:>10} {:>10} {:>11} {:>9} {:>9}\n", "anonymous, at most", "before", "after", "", "before, s",
      "after, s");
  for (const Compared& row : compared(before, after)) {
    say("{:36} {:>10} {:>10} {:>11} {:>9} {:>9}\n", row.name, row.before, row.after, row.change,
        row.seconds_before, row.seconds_after);
  }
}

std::string comparison_markdown(const Profile& before, const Profile& after,
                                const std::vector<std::string>& verdict) {
  std::string out;
  for (const std::string& line : verdict) out += text("**{}**\n\n", cell_of(line));
  out +=
      "| anonymous memory, at most | before | after | | before, s | after, s |\n|---|--:|--:|--:|--:|--:|\n";
  for (const Compared& row : compared(before, after)) {
    const std::size_t name = row.name.find_first_not_of(' ');
    std::string indent;
    for (std::size_t i = 0; i < std::min(name, row.name.size()); ++i) indent += "&nbsp;";
    out += text("| {}{} | {} | {} | {} | {} | {} |\n", indent,
                cell_of(row.name.substr(std::min(name, row.name.size()))), row.before, row.after, row.change,
                row.seconds_before, row.seconds_after);
  }
  return out;
}

}  // namespace etstream
