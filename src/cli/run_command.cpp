// SPDX-License-Identifier: BSD-3-Clause
//
// etstream run [--spill DIR] [--limit SIZE] [--from SIZE] [--report] -- COMMAND...
//
// Exit code: the command's; exit_code_of() if it can't be run.
#include <memory>
#include <string>
#include <vector>

#include "base/print.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/other_command.h"
#include "cli/terminal.h"
#include "etstream/out_of_core.h"

namespace etstream::cli {
namespace {

struct RunArguments {
  std::vector<std::string> misplaced;
  OutOfCoreOptions options;
  bool report = false;
};

void print_use(const OutOfCoreUse& use, const OutOfCoreOptions& options) {
  complain("etstream run: %.1f s, %s\n", use.seconds,
           use.processes == 1 ? "1 process" : text("{} processes", use.processes).c_str());
  const auto line = [](const char* what, std::uint64_t bytes, const std::string& more) {
    complain("  %-10s %10s%s\n", what, readable_size(bytes).c_str(), more.c_str());
  };
  line("anonymous", use.anonymous, "  at most, all processes together");
  line("resident", use.resident, "  with pages of files, those of the heap among them");
  line("spilled", use.spilled,
       text("  at a time, {} in all, of {} and more", counted(use.blocks, "block"),
            readable_size(options.from)));
  if (use.paged_out != 0)
    line("paged out", use.paged_out, text("  over the limit of {}", readable_size(options.limit)));
  if (use.refused != 0) complain("  no room for %s\n", counted(use.refused, "block").c_str());
}

Result<void> run_command(RunArguments arguments, Run& run) {
  arguments.options.library = (installed_folder() / ETSTREAM_HEAP_LIBRARY).string();
  let_writes_end_as_before();
  if (!arguments.report) {
    Error failed = become_out_of_core(run.command, arguments.options);
    run.failed = exit_code_of(failed);
    return failed;
  }
  OutOfCoreUse use;
  const auto end = run_out_of_core(run.command, arguments.options, use);
  if (!end) {
    run.failed = exit_code_of(end.error());
    return end.error();
  }
  print_use(use, arguments.options);
  if (end->signal != 0) die_of(end->signal);
  run.done = end->exit_code;
  return {};
}

}  // namespace

void add_run_command(CLI::App& app, Run& run) {
  CLI::App* command = app.add_subcommand(
      "run", "Run a command whose large blocks of memory lie in a file: an export larger than memory");
  auto arguments = std::make_shared<RunArguments>();
  add_other_command(*command, arguments->misplaced);
  command
      ->add_option("--spill", arguments->options.spill_folder,
                   "Where the file goes, which has no name and ends with the command: a folder on a disk "
                   "(default: $TMPDIR, or /var/tmp)")
      ->type_name(kFolder);
  command
      ->add_option("--limit", arguments->options.limit,
                   "How much of the blocks stays in memory, of each process: 4G, 512M")
      ->transform(CLI::AsSizeValue(false).description(""))
      ->type_name(kSize);
  command
      ->add_option("--from", arguments->options.from,
                   "The smallest block that goes there, 16K at least (default: 16K)")
      ->transform(CLI::AsSizeValue(false).description(""))
      ->type_name(kSize);
  command->add_flag("--report", arguments->report,
                    "Tell on standard error what it took of memory, in the end");
  command->callback([arguments, &run] {
    require_other_command(run, arguments->misplaced);
    run = [arguments, &run] { return run_command(*arguments, run); };
  });
}

}  // namespace etstream::cli
