// SPDX-License-Identifier: BSD-3-Clause
//
// etstream profile [--json F] [--html F] [--fail-above LIMIT]... [--executorch] [--callers]
//     [--compare BEFORE.json [--markdown F]] -- COMMAND...
// etstream profile --phase NAME -- COMMAND...
// etstream profile --compare BEFORE.json AFTER.json [--html F] [--markdown F] [--fail-above LIMIT]...
//
// Exit code: the command's; 3 if it took more than --fail-above; if it can't be run, that of `etstream run`.
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/other_command.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "cli/wrong_command_line.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/input_record.h"
#include "etstream/profile.h"
#include "present/print.h"
#include "present/reports.h"

namespace etstream::cli {
namespace {

constexpr int kTookTooMuch = 3;

/// The most anonymous memory of the command, or of the phases of a name.
struct Limit {
  std::string given;  // "1G@lower"
  std::uint64_t bytes = 0;
  std::optional<double> percent = {};  // over the profile before, instead of `bytes`
  std::string phase = {};              // empty for the command
};

struct ProfileArguments {
  std::vector<std::string> misplaced;
  std::string json;
  std::string html;
  std::string markdown;
  std::string phase;
  std::vector<std::string> fail_above;
  std::vector<Limit> limits;
  bool executorch = false;
  bool callers = false;
  std::vector<std::string> compare;
};

/// The texts of the reports, and where they go.
class Reports {
 public:
  /// Adds a text behind what is in a file.
  Result<void> append(const std::string& path, const std::string& content) {
    std::error_code ignored;
    std::string before;
    if (std::filesystem::is_regular_file(path, ignored)) {
      std::ifstream file(path, std::ios::binary);
      before.assign(std::istreambuf_iterator<char>(file), {});
      if (!file) return make_error(ErrorCode::kIo, "{}: cannot be read, to append to it", quote(path));
    }
    add(path, before.empty() || before.ends_with("\n\n") ? before + content : before + "\n" + content);
    return {};
  }
  void add(const std::string& path, const std::string& content) {
    const std::span bytes = std::as_bytes(std::span(content));
    const auto source = ByteSource::owned({bytes.begin(), bytes.end()});
    outputs_.push_back({&plans_.emplace_back(plan_copy(source, "profile")), path, true});
  }
  Result<void> write() const { return outputs_.empty() ? Result<void>() : write_outputs(outputs_, {}); }

 private:
  std::deque<FilePlan> plans_;
  std::vector<Output> outputs_;
};

/// Refuses, before the command runs, outputs that can't be made, or that would replace a file of the command
/// or a profile that was read.
Result<void> check_reports(const ProfileArguments& arguments, const std::vector<std::string>& command) {
  if (!command.empty()) add_inputs_of(command);
  std::vector<Output> outputs;
  for (const std::string& path : {arguments.json, arguments.html, arguments.markdown}) {
    if (!path.empty()) outputs.push_back({.path = path});
  }
  return check_outputs(outputs, {});
}

/// A profile, also as JSON.
struct ReadProfile {
  Profile profile;
  std::string json;
};

Result<ReadProfile> read_profile_of(const std::string& path) {
  InputRecord::current()->add(path);
  const InputRecord apart;  // once it is read, the command may change it
  ETSTREAM_ASSIGN(const ByteSource source, ByteSource::file(path));
  ReadProfile out;
  ETSTREAM_ASSIGN(out.profile, read_profile(source));
  out.json.resize(static_cast<std::size_t>(source.size()));
  ETSTREAM_TRY(source.read_at(0, std::as_writable_bytes(std::span(out.json))));
  return out;
}

/// Refuses a profile of a part of the work: its peak tells nothing of the whole.
Result<void> check_whole(const Profile& profile, const std::string& path) {
  const std::string failure = failure_of(profile);
  if (failure.empty()) return {};
  return make_error(ErrorCode::kInvalidArgument,
                    "{}: {}, so its memory is that of a part of the work; profile it again", quote(path),
                    failure);
}

/// Returns the most that the command, or a phase of this name, used.
Result<std::uint64_t> peak_of(const Profile& profile, const std::string& phase) {
  ETSTREAM_ASSIGN(const auto most, find_excess(profile, 0, phase));
  return most ? most->anonymous : 0;
}

/// Returns the limit in bytes: a percentage counts from what `before` used.
Result<std::uint64_t> bytes_of(const Limit& limit, const Profile* before) {
  if (!limit.percent) return limit.bytes;
  ETSTREAM_ASSIGN(const std::uint64_t then, peak_of(*before, limit.phase));
  return static_cast<std::uint64_t>(static_cast<double>(then) * (1 + *limit.percent / 100));
}

/// Reads the profile that percentages count from, in which each limit has its phase.
Result<ReadProfile> read_baseline(const ProfileArguments& arguments) {
  ETSTREAM_ASSIGN(ReadProfile before, read_profile_of(arguments.compare[0]));
  for (const Limit& limit : arguments.limits) {
    if (limit.percent) ETSTREAM_TRY(check_whole(before.profile, arguments.compare[0]));
    ETSTREAM_TRY(bytes_of(limit, &before.profile));
  }
  return before;
}

/// The judgement on a profile by its limits, a line for each: for the terminal, and all reports.
struct Verdict {
  std::vector<std::string> lines;
  int exit_code = 0;
};

Result<Verdict> verdict_of(const Profile& profile, const ProfileArguments& arguments, const Profile* before) {
  Verdict out;
  const std::string failure = failure_of(profile);
  const std::string end = failure.empty() ? "" : "; " + failure;
  for (const Limit& limit : arguments.limits) {
    ETSTREAM_ASSIGN(const std::uint64_t bytes, bytes_of(limit, before));
    const auto most = find_excess(profile, 0, limit.phase);
    if (!most) {
      out.lines.push_back(text("memory gate FAILED: {}{}", most.error().message, end));
      out.exit_code = std::max(out.exit_code, 1);
      continue;
    }
    const Excess found = most->value_or(Excess());
    const bool is_above = found.anonymous > bytes;
    if (is_above) out.exit_code = kTookTooMuch;
    const bool are_alike = is_above && readable_size(found.anonymous) == readable_size(bytes);
    const auto words = [&](std::uint64_t size) {
      return are_alike ? counted(size, "byte") : readable_size(size);
    };
    out.lines.push_back(
        text("memory gate {}: {}, limit {}{}{}{}", is_above || !end.empty() ? "FAILED" : "passed",
             words(found.anonymous), words(bytes),
             limit.percent
                 ? text(" ({} % over {})", limit.given.substr(0, limit.given.find('%')), arguments.compare[0])
                 : "",
             found.phase != nullptr ? text(", in phase {}", quote(found.phase->name)) : "", end));
  }
  return out;
}

/// Returns the limits of the whole command, for the page.
Result<std::vector<std::uint64_t>> drawn_limits(const ProfileArguments& arguments, const Profile* before) {
  std::vector<std::uint64_t> out;
  for (const Limit& limit : arguments.limits) {
    if (!limit.phase.empty()) continue;
    ETSTREAM_ASSIGN(out.emplace_back(), bytes_of(limit, before));
  }
  return out;
}

/// Judges a profile, and writes what was asked for, also compared if there is a profile from before. Returns
/// the exit code.
Result<int> report(const ReadProfile& measured, const ReadProfile* before,
                   const ProfileArguments& arguments) {
  const Profile& profile = measured.profile;
  const Profile* const earlier = before != nullptr ? &before->profile : nullptr;
  ETSTREAM_ASSIGN(const Verdict verdict, verdict_of(profile, arguments, earlier));
  for (const std::string& line : verdict.lines) complain("{}\n", printable(line));
  Reports reports;
  if (!arguments.json.empty()) reports.add(arguments.json, measured.json + "\n");
  if (earlier != nullptr && !arguments.markdown.empty()) {
    ETSTREAM_TRY(reports.append(arguments.markdown, comparison_markdown(*earlier, profile, verdict.lines)));
  }
  if (!arguments.html.empty()) {
    ETSTREAM_ASSIGN(const auto limits, drawn_limits(arguments, earlier));
    reports.add(arguments.html, profile_page(measured.json, before != nullptr ? &before->json : nullptr,
                                             limits, verdict.lines));
  }
  ETSTREAM_TRY(reports.write());
  if (earlier != nullptr) print_comparison(*earlier, profile);
  return verdict.exit_code;
}

/// Makes Python import, before any other module, the code that reports what `arguments` ask for.
Result<void> have_python_tell(const ProfileArguments& arguments) {
  if (!arguments.executorch && !arguments.callers) return {};
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
  return {};
}

/// Compares two profiles, and runs nothing.
Result<void> compare_command(const ProfileArguments& arguments, ChosenCommand& chosen) {
  ETSTREAM_ASSIGN(const ReadProfile before, read_baseline(arguments));
  ETSTREAM_ASSIGN(const ReadProfile after, read_profile_of(arguments.compare[1]));
  ETSTREAM_TRY(check_reports(arguments, {}));
  ETSTREAM_ASSIGN(chosen.done, report(after, &before, arguments));
  return check_whole(after.profile, arguments.compare[1]);
}

Result<void> profile_command(const ProfileArguments& arguments, ChosenCommand& chosen) {
  if (arguments.compare.size() == 2) return compare_command(arguments, chosen);
  std::optional<ReadProfile> before;
  if (!arguments.compare.empty()) {
    ETSTREAM_ASSIGN(before, read_baseline(arguments));
  }
  ETSTREAM_TRY(check_reports(arguments, chosen.command));
  ETSTREAM_TRY(have_python_tell(arguments));
  if (!arguments.phase.empty()) {
    const auto end = run_in_phase(chosen.command, arguments.phase);
    if (!end) return not_run(chosen, end.error());
    if (end->signal != 0) die_of(end->signal);
    chosen.done = end->exit_code;
    return {};
  }
  Profile profile;
  const auto end = run_profiled(chosen.command, profile, {.callers = arguments.callers});
  if (!end) return not_run(chosen, end.error());
  let_writes_fail();
  print_profile(profile);
  const std::string json = json_text(profile_to_json(profile));
  const ReadProfile measured{std::move(profile), json};
  ETSTREAM_ASSIGN(const int verdict, report(measured, before ? &*before : nullptr, arguments));
  if (end->signal != 0) die_of(end->signal);
  chosen.done = end->exit_code != 0 ? end->exit_code : verdict;
  return {};
}

/// Reads "1G@lower" or "5%@lower" of --fail-above: the limit, and the phase that it is for.
Limit read_limit(const std::string& given, bool has_baseline) {
  const std::size_t at = given.find('@');
  Limit out{.given = given};
  if (at != std::string::npos) out.phase = given.substr(at + 1);
  if (at != std::string::npos && out.phase.empty()) {
    throw CLI::ValidationError("--fail-above",
                               text("expected SIZE or SIZE@PHASE, such as 1G@lower, found {}", quote(given)));
  }
  const std::string size = given.substr(0, at);
  if (size.ends_with('%')) {
    double percent = 0;
    const auto read = std::from_chars(size.data(), size.data() + size.size() - 1, percent);
    if (read.ec != std::errc() || read.ptr != size.data() + size.size() - 1 ||
        !(percent >= 0 && percent <= 1e6)) {
      throw CLI::ValidationError("--fail-above",
                                 text("expected a percentage such as 5%, found {}", quote(size)));
    }
    if (!has_baseline) {
      throw CLI::ValidationError(
          "--fail-above",
          text("{} is relative: name the profile that it counts from with --compare", quote(given)));
    }
    out.percent = percent;
    return out;
  }
  const auto bytes = parse_size(size);
  if (!bytes) throw WrongValue(about(bytes.error(), "--fail-above"));
  out.bytes = *bytes;
  return out;
}

void check_profile(const ChosenCommand& chosen, ProfileArguments& arguments) {
  const auto refuse = [](bool is_given, const char* option, const char* reason) {
    if (is_given) throw CLI::ValidationError(option, reason);
  };
  for (const std::string& given : arguments.fail_above) {
    arguments.limits.push_back(read_limit(given, !arguments.compare.empty()));
  }
  refuse(!arguments.markdown.empty() && arguments.compare.empty(), "--markdown", "needs --compare");
  if (arguments.compare.size() == 2) {
    const char* const no_run = "two profiles are compared, and no command is run";
    refuse(!chosen.command.empty(), "--compare", "takes one profile with a command, two without");
    refuse(!arguments.json.empty(), "--json", no_run);
    refuse(!arguments.phase.empty(), "--phase", no_run);
    refuse(arguments.callers, "--callers", no_run);
    refuse(arguments.executorch, "--executorch", no_run);
    return;
  }
  require_other_command(chosen, arguments.misplaced);
  const char* const mixed = "standard output is the command's: name a file";
  refuse(is_standard_output(arguments.json), "--json", mixed);
  refuse(is_standard_output(arguments.html), "--html", mixed);
  refuse(is_standard_output(arguments.markdown), "--markdown", mixed);
  if (arguments.phase.empty()) return;
  const char* const of_whole = "the `etstream profile` around this one reports";
  refuse(!arguments.json.empty(), "--json", of_whole);
  refuse(!arguments.html.empty(), "--html", of_whole);
  refuse(!arguments.fail_above.empty(), "--fail-above", of_whole);
  refuse(!arguments.compare.empty(), "--compare", of_whole);
  refuse(arguments.callers, "--callers", of_whole);
}

}  // namespace

void add_profile_command(CLI::App& app, ChosenCommand& chosen) {
  const auto [command, arguments] = add_subcommand<ProfileArguments>(
      app, chosen, "profile",
      "Run a command and report its use of memory: by phase, by process, and over time",
      [&chosen](const ProfileArguments& given) { return profile_command(given, chosen); },
      [&chosen](const CLI::App&, ProfileArguments& given) { check_profile(chosen, given); });
  add_other_command(command, arguments.misplaced);
  add_option(command, "--json", "OUT.json", arguments.json, "Write all measurements to this file");
  add_option(command, "--html", "OUT.html", arguments.html,
             "Write a page with the curve, the phases and the processes; with --compare also of the profile "
             "before");
  add_list(command, "--fail-above", "SIZE|N%[@PHASE]", arguments.fail_above,
           "Exit with 3 if the command used more anonymous memory than this, such as 1G, or if a phase of "
           "this name did, such as 1G@lower; or more by this part than the profile of --compare, such as 5% "
           "or 5%@lower");
  command.add_flag("--executorch", arguments.executorch,
                   "In Python, make ExecuTorch's own steps phases: export, lowering, each backend's "
                   "preprocess, emission, serialization");
  command.add_flag("--callers", arguments.callers,
                   "Also tell what Python was doing when it used more memory than ever before");
  add_option(command, "--phase", "NAME", arguments.phase,
             "Make the command a phase of the `etstream profile` around this one, and report nothing");
  add_option(command, "--compare", "BEFORE.json [AFTER.json]", arguments.compare,
             "Compare the command with an earlier profile; or two profiles, and run nothing")
      ->expected(1, 2);
  add_option(command, "--markdown", "OUT.md", arguments.markdown,
             "Append the comparison as a table, for a pull request");
}

}  // namespace etstream::cli
