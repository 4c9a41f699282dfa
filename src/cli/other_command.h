// SPDX-License-Identifier: BSD-3-Clause
//
// Helpers for subcommands that run another command.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "etstream/result.h"

namespace etstream::cli {

/// The name of that command in help texts.
inline constexpr const char* kOtherCommand = "COMMAND";

/// Adds to the help text the place of the words after "--". Words there without the mark go to `misplaced`.
void add_other_command(CLI::App& command, std::vector<std::string>& misplaced);
/// Throws CLI::RequiredError unless there is a command behind "--", and nothing before it.
void require_other_command(const ChosenCommand& chosen, const std::vector<std::string>& misplaced);

/// Returns the folder with the files that are loaded into other commands. Its place is known from this
/// command's.
[[nodiscard]] std::filesystem::path installed_folder();

/// Returns `error`, the reason why the command can't be run, and sets the exit code as env(1) and similar
/// commands do: 127 if there is no such command, 126 if it is no program, otherwise 125.
[[nodiscard]] Error not_run(ChosenCommand& chosen, Error error);

/// Records as inputs the files that its arguments name, and those that execvp() may run for it: each of its
/// name in PATH.
void add_inputs_of(const std::vector<std::string>& command);

/// Counts processes: "1 process", "2 processes"
[[nodiscard]] std::string count_processes(std::size_t n);

}  // namespace etstream::cli
