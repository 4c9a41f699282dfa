// SPDX-License-Identifier: BSD-3-Clause
//
// etstream profile [--json F] [--html F] [--trace F] [--fail-above SIZE[@PHASE]] [--executorch] [--callers]
//     [--memray F] -- COMMAND...
// etstream profile --compare A.json B.json
//
// Exit code: the command's; 3 if it took more than --fail-above; if it can't be run, that of `etstream run`.
#include <algorithm>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/other_command.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/profile.h"
#include "present/print.h"
#include "present/reports.h"

namespace etstream::cli {
namespace {

constexpr int kTookTooMuch = 3;
constexpr std::size_t kMostPhases = 60;
constexpr std::size_t kMostJumps = 5;
constexpr std::size_t kMostCallers = 12;

struct ProfileArguments {
  std::vector<std::string> misplaced;
  std::string json;
  std::string html;
  std::string trace;
  std::string fail_above;
  std::uint64_t limit = 0;
  std::string limited_phase;
  bool executorch = false;
  bool callers = false;
  std::string memray;
  std::vector<std::string> compare;
};

std::uint64_t added(const PhaseProfile& phase) {
  return phase.peak.anonymous - std::min(phase.peak.anonymous, phase.anonymous_before);
}

void print_phases(const std::vector<PhaseProfile>& phases) {
  if (phases.empty()) return;
  complain("  {:36} {:>10} {:>10} {:>10} {:>9}\n", "phase", "anonymous", "added", "resident", "seconds");
  for (std::size_t i = 0; i < phases.size() && i < kMostPhases; ++i) {
    const PhaseProfile& phase = phases[i];
    const std::string name =
        std::string(2 * std::size_t{phase.depth}, ' ') + phase.name + (phase.ended ? "" : " ...");
    complain("  {:36} {:>10} {:>10} {:>10} {:9.1f}\n", name, readable_size(phase.peak.anonymous),
             readable_size(added(phase)), readable_size(phase.peak.resident), phase.seconds);
  }
  if (phases.size() > kMostPhases)
    complain("  ... and {}\n", counted(phases.size() - kMostPhases, "more phase"));
}

std::string words_of(const ProfileJump::Caller& caller) {
  return printable(text("{}, {}:{}", caller.function, caller.file, caller.line));
}

/// Prints the jumps, and adds up those of the same callers.
void print_jumps(const std::vector<ProfileJump>& jumps) {
  std::map<std::vector<std::string>, std::uint64_t> sums;
  for (const ProfileJump& jump : jumps) {
    std::vector<std::string> words;
    for (const auto& caller : jump.callers) words.push_back(words_of(caller));
    sums[std::move(words)] += jump.by;
  }
  std::vector<std::pair<std::uint64_t, const std::vector<std::string>*>> largest;
  largest.reserve(sums.size());
  for (const auto& [words, by] : sums) largest.emplace_back(by, &words);
  std::ranges::stable_sort(largest, std::greater{}, [](const auto& each) { return each.first; });
  for (std::size_t i = 0; i < largest.size() && i < kMostJumps; ++i) {
    const auto& [by, words] = largest[i];
    complain("  {:>10} were added in{}\n", readable_size(by),
             words->empty() ? " a thread that is not Python's" : "");
    for (std::size_t j = 0; j < words->size() && j < kMostCallers; ++j) {
      complain("             {}\n", (*words)[j]);
    }
    if (words->size() > kMostCallers) {
      complain("             ... and {}\n", counted(words->size() - kMostCallers, "caller"));
    }
  }
}

void print_profile(const Profile& profile) {
  complain("etstream profile: {:.1f} s, {:.1f} s of CPU, {}\n", profile.seconds, profile.cpu_seconds,
           count_processes(profile.processes.size()));
  complain("  at most: {} anonymous, {} resident", readable_size(profile.peak.anonymous),
           readable_size(profile.peak.resident));
  if (profile.spilled != 0) complain(", {} spilled", readable_size(profile.spilled));
  complain("; the page cache grew by {}\n", readable_size(profile.page_cache_growth));
  print_phases(profile.phases);
  print_jumps(profile.jumps);
  for (const std::string& note : profile.notes) complain("  note: {}\n", note);
}

Result<void> write_reports(const Profile& profile, const ProfileArguments& arguments) {
  std::deque<FilePlan> plans;
  std::vector<Output> outputs;
  const auto add = [&](const std::string& path, const std::string& content) {
    const std::span bytes = std::as_bytes(std::span(content));
    const auto source = ByteSource::owned({bytes.begin(), bytes.end()});
    outputs.push_back({&plans.emplace_back(plan_copy(source, "profile")), path, true});
  };
  if (!arguments.json.empty()) add(arguments.json, json_text(profile_to_json(profile)) + "\n");
  if (!arguments.html.empty()) add(arguments.html, profile_page(profile));
  if (!arguments.trace.empty()) add(arguments.trace, json_text(profile_trace(profile)) + "\n");
  return outputs.empty() ? Result<void>() : write_outputs(outputs, {});
}

/// Refuses, before the command runs, outputs that can't be made, or that would replace a file of the command.
Result<void> check_reports(const ProfileArguments& arguments, const std::vector<std::string>& command) {
  add_inputs_of(command);
  std::vector<Output> outputs;
  for (const std::string& path : {arguments.json, arguments.html, arguments.trace, arguments.memray}) {
    if (!path.empty()) outputs.push_back({.path = path});
  }
  return check_outputs(outputs, {});
}

/// Returns whether the command took more than it may, and says so if it did.
Result<bool> is_above(const Profile& profile, const ProfileArguments& arguments) {
  if (arguments.fail_above.empty()) return false;
  ETSTREAM_ASSIGN(const auto excess, find_excess(profile, arguments.limit, arguments.limited_phase));
  if (!excess) return false;
  complain("etstream profile: {} took {} of anonymous memory ({} bytes), over the limit of {}\n",
           excess->phase != nullptr ? text("phase {}", quote(excess->phase->name)) : "the command",
           readable_size(excess->anonymous), excess->anonymous, readable_size(arguments.limit));
  return true;
}

/// Makes Python import, before any other module, the code that reports what `arguments` ask for.
Result<void> have_python_tell(const ProfileArguments& arguments) {
  if (!arguments.executorch && !arguments.callers && arguments.memray.empty()) return {};
  const std::filesystem::path folder = installed_folder() / "python";
  if (!std::filesystem::exists(folder / "sitecustomize.py")) {
    return make_error(ErrorCode::kNotFound, "there is no {}, which has Python tell of itself",
                      quote((folder / "sitecustomize.py").string()));
  }
  const char* const before = std::getenv("PYTHONPATH");
  const std::string path =
      before != nullptr && *before != '\0' ? text("{}:{}", folder.string(), before) : folder.string();
  ::setenv("PYTHONPATH", path.c_str(), 1);
  if (arguments.executorch) ::setenv("ETSTREAM_PROFILE_STEPS", "1", 1);
  if (arguments.callers) ::setenv("ETSTREAM_PROFILE_CALLERS", "1", 1);
  if (!arguments.memray.empty()) {
    ::setenv("ETSTREAM_PROFILE_MEMRAY", std::filesystem::absolute(arguments.memray).c_str(), 1);
  }
  return {};
}

std::string change(std::uint64_t a, std::uint64_t b) {
  return b >= a ? "+" + readable_size(b - a) : "-" + readable_size(a - b);
}

/// Prints two profiles, or two phases; null if there is none.
template <class Measured>
void print_compared(const std::string& name, const Measured* a, const Measured* b) {
  const auto figure = [](const Measured* one) {
    return one != nullptr ? readable_size(one->peak.anonymous) : "-";
  };
  say("{:36} {:>10} {:>10} {:>10} {:9.1f} {:9.1f}\n", name, figure(a), figure(b),
      a != nullptr && b != nullptr ? change(a->peak.anonymous, b->peak.anonymous) : "",
      a != nullptr ? a->seconds : 0, b != nullptr ? b->seconds : 0);
}

/// Phases of one name are compared in the order in which they began.
Result<void> compare_command(const ProfileArguments& arguments) {
  std::vector<Profile> read;
  for (const std::string& path : arguments.compare) {
    ETSTREAM_ASSIGN(const ByteSource json, ByteSource::file(path));
    ETSTREAM_ASSIGN(read.emplace_back(), read_profile(json));
  }
  say("{:36} {:>10} {:>10} {:>10} {:>9} {:>9}\n", "anonymous, at most", "A", "B", "", "A, s", "B, s");
  print_compared("all", &read[0], &read[1]);
  std::map<std::string, std::deque<const PhaseProfile*>> others;
  for (const PhaseProfile& b : read[1].phases) others[b.name].push_back(&b);
  std::set<const PhaseProfile*> compared;
  for (const PhaseProfile& a : read[0].phases) {
    std::deque<const PhaseProfile*>& alike = others[a.name];
    const PhaseProfile* const b = alike.empty() ? nullptr : alike.front();
    if (b != nullptr) alike.pop_front();
    compared.insert(b);
    print_compared(a.name, &a, b);
  }
  for (const PhaseProfile& b : read[1].phases) {
    if (!compared.contains(&b)) print_compared<PhaseProfile>(b.name, nullptr, &b);
  }
  return {};
}

Result<void> profile_command(const ProfileArguments& arguments, Run& run) {
  if (!arguments.compare.empty()) return compare_command(arguments);
  ETSTREAM_TRY(check_reports(arguments, run.command));
  ETSTREAM_TRY(have_python_tell(arguments));
  let_writes_end_as_before();
  Profile profile;
  const auto end = run_profiled(run.command, profile, {.callers = arguments.callers});
  if (!end) return not_run(run, end.error());
  let_writes_fail();
  print_profile(profile);
  ETSTREAM_TRY(write_reports(profile, arguments));
  if (end->signal != 0) die_of(end->signal);
  run.done = end->exit_code;
  if (end->exit_code != 0) return {};
  ETSTREAM_ASSIGN(const bool failed, is_above(profile, arguments));
  if (failed) run.done = kTookTooMuch;
  return {};
}

/// Reads "1G@lower" of --fail-above: the limit, and the phase that it is for.
void read_limit(ProfileArguments& arguments) {
  if (arguments.fail_above.empty()) return;
  const std::size_t at = arguments.fail_above.find('@');
  const auto limit = parse_size(arguments.fail_above.substr(0, at));
  if (at != std::string::npos) arguments.limited_phase = arguments.fail_above.substr(at + 1);
  if (!limit) throw CLI::ValidationError("--fail-above", limit.error().message);
  if (at != std::string::npos && arguments.limited_phase.empty()) {
    throw CLI::ValidationError("--fail-above", text("expected SIZE or SIZE@PHASE, such as 1G@lower, found {}",
                                                    quote(arguments.fail_above)));
  }
  arguments.limit = *limit;
}

void check_profile(const Run& run, ProfileArguments& arguments) {
  if (!arguments.compare.empty()) return;
  require_other_command(run, arguments.misplaced);
  read_limit(arguments);
}

}  // namespace

void add_profile_command(CLI::App& app, Run& run) {
  const auto [command, arguments] = add_subcommand<ProfileArguments>(
      app, run, "profile", "Run a command and report its use of memory: by phase, by process, and over time",
      [&run](const ProfileArguments& given) { return profile_command(given, run); },
      [&run](const CLI::App&, ProfileArguments& given) { check_profile(run, given); });
  add_other_command(command, arguments.misplaced);
  add_option(command, "--json", "OUT.json", arguments.json, "Write all measurements to this file");
  add_option(command, "--html", "OUT.html", arguments.html,
             "Write a page with the curve, the phases and the processes");
  add_option(command, "--trace", "OUT.json", arguments.trace,
             "Write a trace for Perfetto or chrome://tracing");
  add_option(command, "--fail-above", kSize + std::string("[@PHASE]"), arguments.fail_above,
             "Exit with 3 if the command used more anonymous memory than this, such as 1G, or if a phase of "
             "this name did, such as 1G@lower");
  command.add_flag("--executorch", arguments.executorch,
                   "In Python, make ExecuTorch's own steps phases: export, lowering, each backend's "
                   "preprocess, emission, serialization");
  command.add_flag("--callers", arguments.callers,
                   "Also tell what Python was doing when it used more memory than ever before");
  add_option(command, "--memray", "OUT.bin", arguments.memray,
             "Make memray, if Python has it, record all allocations of the first Python process");
  add_option(command, "--compare", "A.json B.json", arguments.compare,
             "Compare two profiles, and run nothing")
      ->expected(2);
}

}  // namespace etstream::cli
