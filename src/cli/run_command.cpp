// SPDX-License-Identifier: BSD-3-Clause
//
// etstream run [--spill DIR] [--limit SIZE] [--from SIZE] [--optional] [--report] -- COMMAND...
//
// Exit code: the command's; see not_run() if it can't be run.
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/other_command.h"
#include "cli/terminal.h"
#include "core/base/text.h"
#include "etstream/out_of_core.h"
#include "present/print.h"

namespace etstream::cli {
namespace {

struct RunArguments {
  std::vector<std::string> misplaced;
  OutOfCoreOptions options;
  bool optional = false;
  bool report = false;
};

void print_use(const OutOfCoreUse& use, const OutOfCoreOptions& options) {
  complain("etstream run: {:.1f} s, {}\n", use.seconds, count_processes(use.processes));
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
      [&chosen](const RunArguments& given) { return run_command(given, chosen); },
      [&chosen](const CLI::App&, const RunArguments& given) {
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
  command.add_flag("--optional", arguments.optional,
                   "If blocks can't be in a file, because of the folder or of ulimit -v, -d or -f, run the "
                   "command with its blocks in memory, and say so");
  command.add_flag("--report", arguments.report,
                   "At the end, report the command's use of memory on standard error");
}

}  // namespace etstream::cli
