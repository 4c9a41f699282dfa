// SPDX-License-Identifier: BSD-3-Clause
//
// etstream run [--spill DIR] [--limit SIZE] [--from SIZE] [--report] -- COMMAND...
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/text.h"
#include "base/try.h"
#include "cli/commands.h"
#include "cli/terminal.h"
#include "etstream/out_of_core.h"

namespace etstream::cli {
namespace {

struct RunArguments {
  std::vector<std::string> command;
  OutOfCoreOptions options;
  bool report = false;
};

/// Where the library lies that serves the blocks: in a place that is known from the command's.
std::string heap_library() {
  std::error_code failed;
  const std::filesystem::path command = std::filesystem::read_symlink("/proc/self/exe", failed);
  return (command.parent_path() / ETSTREAM_HEAP_FOLDER / ETSTREAM_HEAP_LIBRARY).lexically_normal().string();
}

void print_use(const OutOfCoreUse& use, const OutOfCoreOptions& options) {
  std::fprintf(stderr, "etstream run: %.1f s, %s\n", use.seconds,
               use.processes == 1 ? "1 process" : text(use.processes, " processes").c_str());
  const auto line = [](const char* what, std::uint64_t bytes, const std::string& more) {
    std::fprintf(stderr, "  %-10s %10s%s\n", what, readable_size(bytes).c_str(), more.c_str());
  };
  line("anonymous", use.anonymous, "  at most, all processes together");
  line("resident", use.resident, "  with pages of files, those of the heap among them");
  line("spilled", use.spilled,
       text("  at a time, ", counted(use.blocks, "block"), " in all, of ", readable_size(options.from),
            " and more"));
  if (use.paged_out != 0)
    line("paged out", use.paged_out, text("  over the limit of ", readable_size(options.limit)));
  if (use.refused != 0) std::fprintf(stderr, "  no room for %s\n", counted(use.refused, "block").c_str());
}

Result<void> run_command(RunArguments arguments, Run& run) {
  arguments.options.library = heap_library();
  let_writes_end_as_before();
  if (!arguments.report) return become_out_of_core(arguments.command, arguments.options);
  OutOfCoreUse use;
  ETSTREAM_ASSIGN(const CommandEnd end, run_out_of_core(arguments.command, arguments.options, use));
  print_use(use, arguments.options);
  if (end.signal != 0) die_of(end.signal);
  run.done = end.exit_code;
  return {};
}

}  // namespace

void add_run_command(CLI::App& app, Run& run) {
  CLI::App* command = app.add_subcommand(
      "run", "Run a command whose large blocks of memory lie in a file: an export larger than memory");
  auto arguments = std::make_shared<RunArguments>();
  command->add_option("COMMAND", arguments->command, "The command and its arguments, after --")->required();
  command
      ->add_option("--spill", arguments->options.spill_folder,
                   "Where the file goes, which has no name and ends with the command: a folder on a disk "
                   "(default: $TMPDIR, or /var/tmp)")
      ->type_name(kFolder);
  command
      ->add_option("--limit", arguments->options.limit,
                   "How much of the blocks stays in memory, of each process: 4G, 512M")
      ->transform(CLI::AsSizeValue(false))
      ->type_name(kSize);
  command
      ->add_option("--from", arguments->options.from,
                   "The smallest block that goes there, 64K at least (default: 1M)")
      ->transform(CLI::AsSizeValue(false))
      ->type_name(kSize);
  command->add_flag("--report", arguments->report,
                    "Tell on standard error what it took of memory, in the end");
  command->callback([arguments, &run] { run = [arguments, &run] { return run_command(*arguments, run); }; });
}

}  // namespace etstream::cli
