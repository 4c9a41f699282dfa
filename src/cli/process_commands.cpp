// SPDX-License-Identifier: BSD-3-Clause
//
// etstream run [--spill DIR] [--limit SIZE] [--from SIZE] [--optional] [--report] -- COMMAND...
// etstream profile [--json F] [--html F] [--fail-above LIMIT]... [--executorch] [--callers]
//     [--compare BEFORE.json [--markdown F]] -- COMMAND...
// etstream profile --phase NAME -- COMMAND...
// etstream profile --compare BEFORE.json AFTER.json [--html F] [--markdown F] [--fail-above LIMIT]...
//
// Exit code: the command's; 3 if it took more than --fail-above; see not_run() if it can't be run.
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/command_line.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/byte_source.h"
#include "etstream/profile.h"
#include "present/print.h"
#include "present/reports.h"

namespace etstream::cli {
namespace {

/// Adds to the help text the place of the words after "--". Words there without the mark go to `misplaced`.
void add_other_command(CLI::App& command, std::vector<std::string>& misplaced) {
  add_argument(command, kOtherCommand, misplaced, "The command and its arguments, after --");
}

/// Refuses a command line without a command behind "--", or with something before it.
void require_other_command(const ChosenCommand& chosen, const std::vector<std::string>& misplaced) {
  if (chosen.command.empty() || !misplaced.empty()) refuse_without(kOtherCommand);
}

/// Returns the folder with the files that are loaded into other commands. Its place is known from this
/// command's.
std::filesystem::path installed_folder() {
  std::error_code failed;
  const auto own_program = std::filesystem::read_symlink("/proc/self/exe", failed);
  return (own_program.parent_path() / ETSTREAM_HEAP_FOLDER).lexically_normal();
}

/// Returns `error`, the reason why the command can't be run, and sets the exit code as env(1) and similar
/// commands do: 127 if there is no such command, 126 if it is no program, otherwise 125.
Error not_run(ChosenCommand& chosen, Error error) {
  chosen.failed = error.code == ErrorCode::kNotFound ? 127 : error.code == ErrorCode::kIo ? 126 : 125;
  return error;
}

/// Records as inputs the files that its arguments name, and those that execvp() may run for it: each of its
/// name in PATH.
void add_inputs_of(const std::vector<std::string>& command) {
  InputRecord* const inputs = InputRecord::current();
  if (inputs == nullptr) return;
  const auto add = [&](const std::filesystem::path& file) {
    std::error_code ignored;
    if (std::filesystem::is_regular_file(file, ignored)) inputs->add(file.string());
  };
  for (const std::string& argument : std::span(command).subspan(1)) add(argument);
  const std::string& program = command.front();
  if (program.find('/') != std::string::npos) return add(program);
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/bin:/usr/bin");
  // An empty folder is the current one.
  for (std::string folder; std::getline(folders, folder, ':');) add(std::filesystem::path(folder) / program);
}

constexpr const char* kExitCodes =
    "The exit code is the command's; 127 if there is no such command, 126 if it can't be run, and 125 after "
    "another error.";

struct RunArguments {
  std::vector<std::string> misplaced;
  OutOfCoreOptions options;
  bool optional = false;
  bool report = false;
};

void print_use(const OutOfCoreUse& use, const OutOfCoreOptions& options) {
  complain("etstream run: {:.1f} s, {} process{}\n", use.seconds, use.processes,
           use.processes == 1 ? "" : "es");
  const auto line = [](const char* what, std::uint64_t bytes, const std::string& more) {
    complain("  {:10} {:>10}{}\n", what, readable_size(bytes), more);
  };
  line("anonymous", use.anonymous, "  at most, all processes together");
  line("resident", use.resident, "  with pages of files, those of the heap among them");
  line("spilled", use.spilled,
       text("  in the heap's file at once, at most; {} in all, each of at least {}",
            counted(use.blocks, "block"), readable_size(options.from)));
  complain("  {:10} {:>10}  in one process at most\n", "mappings", use.mappings);
  if (use.paged_out != 0)
    line("paged out", use.paged_out, text("  over the limit of {}", readable_size(options.limit)));
  if (use.refused != 0) complain("  no room for {}\n", counted(use.refused, "block"));
}

Result<void> run_command(RunArguments arguments, ChosenCommand& chosen) {
  arguments.options.library = (installed_folder() / ETSTREAM_HEAP_LIBRARY).string();
  bool has_heap = true;
  if (arguments.optional) {
    arguments.options.without_heap = [&has_heap](const Error& reason) {
      has_heap = false;
      complain("etstream run: {}; the blocks of this command stay in memory\n", one_line(reason.message));
    };
  }
  if (!arguments.report) return not_run(chosen, become_out_of_core(chosen.command, arguments.options));
  OutOfCoreUse use;
  const auto end = run_out_of_core(chosen.command, arguments.options, use);
  if (!end) return not_run(chosen, end.error());
  if (has_heap) print_use(use, arguments.options);
  if (end->signal != 0) die_of(end->signal);
  chosen.done = end->exit_code;
  return {};
}

}  // namespace

void add_run_command(CLI::App& app, ChosenCommand& chosen) {
  const auto [command, arguments] = add_subcommand<RunArguments>(
      app, chosen, "run",
      "Run a command with its large blocks of memory in a file, such as an export larger than memory",
      run_command, [&chosen](const CLI::App&, const RunArguments& given) {
        require_other_command(chosen, given.misplaced);
      });
  add_other_command(command, arguments.misplaced);
  OutOfCoreOptions& options = arguments.options;
  add_option(command, "--spill", kFolder, options.spill_folder,
             "Put the file, which has no name and ends with the command, in this folder on a disk (default: "
             "$TMPDIR, or /var/tmp)");
  add_size(command, "--limit", options.limit,
           "Keep at most this much of each process's blocks in memory: 4G, 512M; at least 1M",
           {.least = kLeastOutOfCoreLimit});
  add_size(command, "--from", options.from,
           "Put blocks of at least this size in the file, 16K or more (default: 16K)",
           {.least = kLeastOutOfCoreBlock});
  add_flag(command, "--optional", arguments.optional,
           "If blocks can't be in a file, because of the folder or of ulimit -v, -d or -f, run the "
           "command with its blocks in memory, and say so");
  add_flag(command, "--report", arguments.report,
           "At the end, report the command's use of memory on standard error");
  add_footer(command, kExitCodes);
}

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
  std::string compare_if_there;
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

Result<void> profile_command(ProfileArguments arguments, ChosenCommand& chosen) {
  std::error_code ignored;
  if (!arguments.compare_if_there.empty() && !std::filesystem::exists(arguments.compare[0], ignored)) {
    complain("etstream profile: there is no {} yet: nothing is compared with it\n",
             quote(arguments.compare[0]));
    arguments.compare.clear();
    std::erase_if(arguments.limits, [](const Limit& one) { return one.percent.has_value(); });
  }
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
    refuse(text("--fail-above: expected SIZE or SIZE@PHASE, such as 1G@lower, found {}", quote(given)));
  }
  const std::string size = given.substr(0, at);
  if (size.ends_with('%')) {
    double percent = 0;
    const auto read = std::from_chars(size.data(), size.data() + size.size() - 1, percent);
    if (read.ec != std::errc() || read.ptr != size.data() + size.size() - 1 ||
        !(percent >= 0 && percent <= 1e6)) {
      refuse(text("--fail-above: expected a percentage such as 5%, found {}", quote(size)));
    }
    if (!has_baseline) {
      refuse(text("--fail-above: {} is relative: name the profile that it counts from with --compare",
                  quote(given)));
    }
    out.percent = percent;
    return out;
  }
  const auto bytes = parse_size(size);
  if (!bytes) refuse(about(bytes.error(), "--fail-above"));
  out.bytes = *bytes;
  return out;
}

void check_profile(const CLI::App& command, const ChosenCommand& chosen, ProfileArguments& arguments) {
  const auto refuse_if = [](bool is_wrong, const char* option, const char* reason) {
    if (is_wrong) refuse(text("{}: {}", option, reason));
  };
  const auto refuse_all = [&](std::initializer_list<const char*> options, const char* reason) {
    for (const char* const option : options) refuse_if(is_given(command, option), option, reason);
  };
  if (!arguments.compare_if_there.empty()) arguments.compare = {arguments.compare_if_there};
  for (const std::string& given : arguments.fail_above) {
    arguments.limits.push_back(read_limit(given, !arguments.compare.empty()));
  }
  refuse_if(!arguments.markdown.empty() && arguments.compare.empty(), "--markdown", "needs --compare");
  if (arguments.compare.size() == 2) {
    refuse_if(!chosen.command.empty(), "--compare", "takes one profile with a command, two without");
    refuse_all({"--json", "--phase", "--callers", "--executorch"},
               "two profiles are compared, and no command is run");
    return;
  }
  require_other_command(chosen, arguments.misplaced);
  const char* const mixed = "standard output is the command's: name a file";
  refuse_if(is_standard_output(arguments.json), "--json", mixed);
  refuse_if(is_standard_output(arguments.html), "--html", mixed);
  refuse_if(is_standard_output(arguments.markdown), "--markdown", mixed);
  if (arguments.phase.empty()) return;
  refuse_all({"--json", "--html", "--fail-above", "--compare", "--compare-if-there", "--callers"},
             "the `etstream profile` around this one reports");
}

}  // namespace

void add_profile_command(CLI::App& app, ChosenCommand& chosen) {
  const auto [command, arguments] = add_subcommand<ProfileArguments>(
      app, chosen, "profile",
      "Run a command and report its use of memory: by phase, by process, and over time", profile_command,
      [&chosen](const CLI::App& own, ProfileArguments& given) { check_profile(own, chosen, given); });
  add_other_command(command, arguments.misplaced);
  add_option(command, "--json", "OUT.json", arguments.json, "Write all measurements to this file");
  add_option(command, "--html", "OUT.html", arguments.html,
             "Write a page with the curve, the phases and the processes; with --compare also of the profile "
             "before");
  add_list(command, "--fail-above", "SIZE|N%[@PHASE]", arguments.fail_above,
           "Exit with 3 if the command used more anonymous memory than this, such as 1G, or if a phase of "
           "this name did, such as 1G@lower; or more by this part than the profile of --compare, such as 5% "
           "or 5%@lower");
  add_flag(command, "--executorch", arguments.executorch,
           "In Python, make ExecuTorch's own steps phases: export, lowering, each backend's "
           "preprocess, emission, serialization");
  add_flag(command, "--callers", arguments.callers,
           "Also tell what Python was doing when it used more memory than ever before");
  add_option(command, "--phase", "NAME", arguments.phase,
             "Make the command a phase of the `etstream profile` around this one, and report nothing");
  const Option compare =
      add_option(command, "--compare", "BEFORE.json [AFTER.json]", arguments.compare,
                 "Compare the command with an earlier profile; or two profiles, and run nothing")
          .expected(1, 2);
  add_option(command, "--compare-if-there", "BEFORE.json", arguments.compare_if_there,
             "Do so if there is such a file, and say if there is none, as on a gate's first night")
      .excludes(compare);
  add_option(command, "--markdown", "OUT.md", arguments.markdown,
             "Append the comparison as a table, for a pull request");
  add_footer(command, std::string(kExitCodes) +
                          " If the command succeeds, it is 3 if it used more than --fail-above.");
}

}  // namespace etstream::cli
