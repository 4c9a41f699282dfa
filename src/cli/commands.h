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
struct ChosenCommand {
  std::function<Result<void>()> work = {};
  /// The words after "--" on the command line of a subcommand that runs another command.
  std::vector<std::string> command = {};
  int done = 0;
  int failed = 1;
};

/// Makes the whole command line. Parsing it sets `chosen`, which outlives it, if a subcommand is given.
[[nodiscard]] std::unique_ptr<CLI::App> make_command_line(ChosenCommand& chosen);

/// Adds a subcommand that runs `work` on its arguments. Returns it with these arguments, which live as long:
/// its options set them. `check` gets both after parsing, and throws CLI11's errors if options don't go
/// together.
template <class Arguments, class Work, class Check = void (*)(const CLI::App&, const Arguments&)>
std::pair<CLI::App&, Arguments&> add_subcommand(
    CLI::App& app, ChosenCommand& chosen, const std::string& name, const std::string& description, Work work,
    Check check = [](const CLI::App&, const Arguments&) {}) {
  CLI::App* const command = app.add_subcommand(name, description);
  const auto arguments = std::make_shared<Arguments>();
  command->callback([=, &chosen] {
    check(*command, *arguments);
    chosen.work = [=] { return work(*arguments); };
  });
  return {*command, *arguments};
}

void add_bundle_command(CLI::App& app, ChosenCommand& chosen);
void add_compare_command(CLI::App& app, ChosenCommand& chosen);
void add_compile_command(CLI::App& app, ChosenCommand& chosen);
void add_convert_command(CLI::App& app, ChosenCommand& chosen);
void add_decompile_command(CLI::App& app, ChosenCommand& chosen);
void add_diff_command(CLI::App& app, ChosenCommand& chosen);
void add_embed_command(CLI::App& app, ChosenCommand& chosen);
void add_explain_command(CLI::App& app, ChosenCommand& chosen);
void add_extract_command(CLI::App& app, ChosenCommand& chosen);
void add_fat_command(CLI::App& app, ChosenCommand& chosen);
void add_help_command(CLI::App& app, ChosenCommand& chosen);
void add_inspect_command(CLI::App& app, ChosenCommand& chosen);
void add_pack_command(CLI::App& app, ChosenCommand& chosen);
void add_profile_command(CLI::App& app, ChosenCommand& chosen);
void add_ptd_command(CLI::App& app, ChosenCommand& chosen);
void add_pte_command(CLI::App& app, ChosenCommand& chosen);
void add_ptn_command(CLI::App& app, ChosenCommand& chosen);
void add_reweight_command(CLI::App& app, ChosenCommand& chosen);
void add_run_command(CLI::App& app, ChosenCommand& chosen);
void add_share_command(CLI::App& app, ChosenCommand& chosen);
void add_unpack_command(CLI::App& app, ChosenCommand& chosen);
void add_verify_command(CLI::App& app, ChosenCommand& chosen);

}  // namespace etstream::cli
