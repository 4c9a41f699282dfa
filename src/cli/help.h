// SPDX-License-Identifier: BSD-3-Clause
//
// The help of a subcommand, on one screen of 80 columns. Only sources that need CLI11 include this.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/command_line.h"
#include "etstream/result.h"

namespace etstream::cli {

/// Returns the names of an option: "-o", "--output"; none for an argument without a name.
[[nodiscard]] std::vector<std::string> names_of(const CLI::Option& option);
/// Returns the name of its value: "OUT.bpte", "one|other"; "" for a flag.
[[nodiscard]] std::string value_of(const CLI::Option& option);
/// Returns the two examples of a subcommand.
[[nodiscard]] std::vector<std::string> examples_of(const CLI::App& command);
[[nodiscard]] bool is_help(const CLI::Option& option);
[[nodiscard]] bool is_common(const CLI::Option& option);
/// Returns the names of a command's common options, which the help of the whole command describes.
[[nodiscard]] std::vector<std::string> common_names(const CLI::App& app);

/// Writes the help of a command: what it does, two examples, its arguments and options. Options that all
/// writers have are only named; the help of the whole command describes them.
class HelpPage : public CLI::Formatter {
 public:
  [[nodiscard]] std::string make_help(const CLI::App* app, std::string name,
                                      CLI::AppFormatMode mode) const override;
};

/// A value that the command can't take. It is no CLI::ValidationError, of which CLI11 keeps only the words.
struct WrongValue : CLI::ParseError {
  explicit WrongValue(etstream::Error why)
      : CLI::ParseError("WrongValue", why.message, CLI::ExitCodes::ValidationError), error(std::move(why)) {}
  etstream::Error error;
};

[[nodiscard]] std::vector<std::string> subcommand_names(const CLI::App& app);
/// Makes the error of a wrong command line with the advice "did you mean --cases?"; without it if `meant` is
/// empty.
[[nodiscard]] Error did_you_mean(std::string words, const std::string& meant);
/// Returns the error "there is no subcommand 'verfy'; did you mean verify?", about the subcommands of `app`.
[[nodiscard]] Error no_subcommand(const CLI::App& app, const std::string& word);

}  // namespace etstream::cli
