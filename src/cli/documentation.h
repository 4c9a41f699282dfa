// SPDX-License-Identifier: BSD-3-Clause
//
// The manual page, the sections of docs/command/ and the completions for shells, made from the command
// line's own definitions.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/help_page.h"

namespace etstream::cli {

/// A subcommand that does something by itself. In a group, its name has both words: "fat pack".
struct WorkingCommand {
  std::string name;
  const CLI::App* app = nullptr;
};

[[nodiscard]] std::vector<WorkingCommand> working_commands(const CLI::App& app);

/// The kinds of words with which a shell can complete a value.
enum class Completion { kNothing, kFiles, kFolders, kChoices, kSubcommands };

[[nodiscard]] Completion completion_of(const CLI::Option& option);

[[nodiscard]] std::string manual_page(const CLI::App& app);
/// Returns a section for each subcommand, between the comments `<!-- NAME -->` and `<!-- end -->`.
[[nodiscard]] std::string markdown_page(const CLI::App& app);

[[nodiscard]] std::string bash_completion(const CLI::App& app);
[[nodiscard]] std::string zsh_completion(const CLI::App& app);
[[nodiscard]] std::string fish_completion(const CLI::App& app);

}  // namespace etstream::cli
