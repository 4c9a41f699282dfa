// SPDX-License-Identifier: BSD-3-Clause
//
// What subcommands that run another command share.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "etstream/result.h"

namespace etstream::cli {

/// The name of that place.
inline constexpr const char* kOtherCommand = "COMMAND";

/// The place in help texts of what follows "--". What comes there without the mark goes to `misplaced`.
void add_other_command(CLI::App& command, std::vector<std::string>& misplaced);
/// Throws CLI::RequiredError unless there is a command behind "--", and nothing before it.
void require_other_command(const Run& run, const std::vector<std::string>& misplaced);

/// The folder with what is loaded into other commands, in a place that is known from this command's.
[[nodiscard]] std::filesystem::path installed_folder();

/// Returns `error`, for which the command can't be run, and has the run end as env(1) and others that run
/// one: with 127 where there is none, 126 where it is no program, otherwise 125.
[[nodiscard]] Error not_run(Run& run, Error error);

/// "1 process", "2 processes"
[[nodiscard]] std::string count_processes(std::size_t n);

/// The file that this process runs, where links lead to; empty where the system doesn't tell.
[[nodiscard]] std::filesystem::path own_program();

}  // namespace etstream::cli
