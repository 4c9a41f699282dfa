// SPDX-License-Identifier: BSD-3-Clause
//
// The manual page, the sections of docs/command.md and the completions for shells, made from the command
// line's own definitions.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace etstream::cli {

/// What a shell can complete a value with.
enum class Completion { kNothing, kFiles, kFolders, kChoices };

/// An option, or an argument that goes by its place.
struct OptionText {
  std::vector<std::string> names;    // "-o", "--output"; none of an argument that goes by its place
  std::string value;                 // "OUT.bpte"; "" of a flag
  std::vector<std::string> choices;  // of kChoices: the words that the value may be
  std::string description;
  Completion completion = Completion::kNothing;
  bool required = false;

  [[nodiscard]] bool has_value() const { return !value.empty(); }
  [[nodiscard]] bool by_place() const { return names.empty(); }
  [[nodiscard]] bool is_help() const { return !by_place() && names.back() == "--help"; }
};

struct CommandText {
  std::string name;
  std::string description;
  std::vector<OptionText> options;
  std::vector<CommandText> subcommands;
};

[[nodiscard]] CommandText describe(const CLI::App& app);

/// The subcommands that do something, in order. One that only has subcommands is left out, and these are
/// named with it: "fat pack".
[[nodiscard]] std::vector<CommandText> working_commands(const CommandText& command);

[[nodiscard]] std::string manual_page(const CommandText& command);
/// A section a subcommand, each between the comments `<!-- NAME -->` and `<!-- end -->`.
[[nodiscard]] std::string markdown_page(const CommandText& command);

[[nodiscard]] std::string bash_completion(const CommandText& command);
[[nodiscard]] std::string zsh_completion(const CommandText& command);
[[nodiscard]] std::string fish_completion(const CommandText& command);

}  // namespace etstream::cli
