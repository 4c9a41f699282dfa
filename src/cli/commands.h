// SPDX-License-Identifier: BSD-3-Clause
//
// The subcommands, one file each. Each adds itself to the command line; running it gives a
// Result that says how it went.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "etstream/result.h"

namespace etstream::cli {

/// What the chosen subcommand does, once the command line has been read, and the exit codes that it ends
/// with.
struct Run {
  std::function<Result<void>()> work;
  /// What follows "--" on the command line of a subcommand that runs another command.
  std::vector<std::string> command = {};
  int done = 0;
  int failed = 1;

  template <class Work>
  Run& operator=(Work chosen) {
    work = std::move(chosen);
    return *this;
  }
};

/// The whole command line. Parsing it sets `run`, which outlives it, where a subcommand is given.
[[nodiscard]] std::unique_ptr<CLI::App> make_command_line(Run& run);

/// Type names of values. Shells complete choices such as "one|other" with their words, folders with folders,
/// the other three with nothing, and values of any other type name with files.
inline constexpr const char* kNumber = "N";
inline constexpr const char* kName = "NAME";
inline constexpr const char* kSize = "SIZE";
inline constexpr const char* kFolder = "DIR";

void add_bundle_command(CLI::App& app, Run& run);
void add_compile_command(CLI::App& app, Run& run);
void add_convert_command(CLI::App& app, Run& run);
void add_decompile_command(CLI::App& app, Run& run);
void add_diff_command(CLI::App& app, Run& run);
void add_extract_command(CLI::App& app, Run& run);
void add_fat_command(CLI::App& app, Run& run);
void add_inspect_command(CLI::App& app, Run& run);
void add_profile_command(CLI::App& app, Run& run);
void add_ptd_command(CLI::App& app, Run& run);
void add_pte_command(CLI::App& app, Run& run);
void add_ptn_command(CLI::App& app, Run& run);
void add_run_command(CLI::App& app, Run& run);
void add_share_command(CLI::App& app, Run& run);
void add_verify_command(CLI::App& app, Run& run);

}  // namespace etstream::cli
