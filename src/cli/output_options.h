// SPDX-License-Identifier: BSD-3-Clause
//
// What the commands that write one file have in common on their command lines.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace etstream::cli {

struct OutputOptions {
  std::string output;
  bool dry_run = false;
  bool no_sync = false;
  bool json = false;
};

/// `what` is written, to a path such as `example`.
void add_output_path(CLI::App& command, OutputOptions& options, const std::string& what,
                     const std::string& example);
void add_output_flags(CLI::App& command, OutputOptions& options);
/// Throws CLI11's errors where options don't go together.
void check_output(const CLI::App& command, const OutputOptions& options);

}  // namespace etstream::cli
