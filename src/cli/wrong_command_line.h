// SPDX-License-Identifier: BSD-3-Clause
//
// The sentence about a command line that can't be understood.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/commands.h"

namespace etstream::cli {

/// Returns what is wrong with the command line, and what to do: "etstream: there is no subcommand 'verfy';
/// did you mean verify?". `app` has parsed `arguments`, which came to `error`; `run` has what followed "--".
[[nodiscard]] std::string describe(const CLI::App& app, const CLI::ParseError& error,
                                   const std::vector<std::string>& arguments, const Run& run);

/// Returns "there is no subcommand 'verfy'; did you mean verify?", of the subcommands of `app`.
[[nodiscard]] std::string no_subcommand(const CLI::App& app, const std::string& word);

}  // namespace etstream::cli
