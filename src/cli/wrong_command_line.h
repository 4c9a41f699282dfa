// SPDX-License-Identifier: BSD-3-Clause
//
// The message about a command line that can't be understood.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "etstream/result.h"

namespace etstream::cli {

/// A value that the command can't take. It is no CLI::ValidationError, of which CLI11 keeps only the words.
struct WrongValue : CLI::ParseError {
  explicit WrongValue(etstream::Error why)
      : CLI::ParseError("WrongValue", why.message, CLI::ExitCodes::ValidationError), error(std::move(why)) {}
  etstream::Error error;
};

/// Returns the problem of the command line, and the advice: "etstream: there is no subcommand 'verfy'; did
/// you mean verify?". `app` has parsed `arguments`, with the error `error`; `chosen` has the words after
/// "--".
[[nodiscard]] std::string describe(const CLI::App& app, const CLI::ParseError& error,
                                   const std::vector<std::string>& arguments, const ChosenCommand& chosen);

/// Returns the error "there is no subcommand 'verfy'; did you mean verify?", about the subcommands of `app`.
[[nodiscard]] Error no_subcommand(const CLI::App& app, const std::string& word);

}  // namespace etstream::cli
