// SPDX-License-Identifier: BSD-3-Clause
//
// The help of a subcommand, on one screen of 80 columns.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace etstream::cli {

/// Returns the names of an option: "-o", "--output"; none for an argument without a name.
[[nodiscard]] std::vector<std::string> names_of(const CLI::Option& option);
/// Returns the name of its value: "OUT.bpte", "one|other"; "" for a flag.
[[nodiscard]] std::string value_of(const CLI::Option& option);
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

}  // namespace etstream::cli
