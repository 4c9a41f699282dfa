// SPDX-License-Identifier: BSD-3-Clause
//
// The subcommands, a file each or a few that belong together. Each registers its options, and a function that
// returns a Result that says how it went.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "etstream/result.h"

namespace etstream::cli {

/// The work of the chosen subcommand, once the command line has been read, and its exit codes.
struct Run {
  std::function<Result<void>()> work = {};
  /// The words after "--" on the command line of a subcommand that runs another command.
  std::vector<std::string> command = {};
  int done = 0;
  int failed = 1;
};

/// Makes the whole command line. Parsing it sets `run`, which outlives it, if a subcommand is given.
[[nodiscard]] std::unique_ptr<CLI::App> make_command_line(Run& run);

/// Adds a subcommand that runs `work` on its arguments. Returns it with these arguments, which live as long:
/// its options set them. `check` gets both after parsing, and throws CLI11's errors if options don't go
/// together.
template <class Arguments, class Work, class Check = void (*)(const CLI::App&, const Arguments&)>
std::pair<CLI::App&, Arguments&> add_subcommand(
    CLI::App& app, Run& run, const std::string& name, const std::string& description, Work work,
    Check check = [](const CLI::App&, const Arguments&) {}) {
  CLI::App* const command = app.add_subcommand(name, description);
  const auto arguments = std::make_shared<Arguments>();
  command->callback([=, &run] {
    check(*command, *arguments);
    run.work = [=] { return work(*arguments); };
  });
  return {*command, *arguments};
}

void add_bundle_command(CLI::App& app, Run& run);
void add_compile_command(CLI::App& app, Run& run);
void add_convert_command(CLI::App& app, Run& run);
void add_decompile_command(CLI::App& app, Run& run);
void add_diff_command(CLI::App& app, Run& run);
void add_extract_command(CLI::App& app, Run& run);
void add_fat_command(CLI::App& app, Run& run);
void add_help_command(CLI::App& app, Run& run);
void add_inspect_command(CLI::App& app, Run& run);
void add_profile_command(CLI::App& app, Run& run);
void add_ptd_command(CLI::App& app, Run& run);
void add_pte_command(CLI::App& app, Run& run);
void add_ptn_command(CLI::App& app, Run& run);
void add_run_command(CLI::App& app, Run& run);
void add_share_command(CLI::App& app, Run& run);
void add_verify_command(CLI::App& app, Run& run);

}  // namespace etstream::cli
