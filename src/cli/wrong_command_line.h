// SPDX-License-Identifier: BSD-3-Clause
//
// The message about a command line that can't be understood.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/commands.h"

namespace etstream::cli {

/// Returns the problem of the command line, and the advice: "etstream: there is no subcommand 'verfy'; did
/// you mean verify?". `app` has parsed `arguments`, with the error `error`; `chosen` has the words after
/// "--".
[[nodiscard]] std::string describe(const CLI::App& app, const CLI::ParseError& error,
                                   const std::vector<std::string>& arguments, const ChosenCommand& chosen);

/// Returns "there is no subcommand 'verfy'; did you mean verify?", about the subcommands of `app`.
[[nodiscard]] std::string no_subcommand(const CLI::App& app, const std::string& word);

}  // namespace etstream::cli
