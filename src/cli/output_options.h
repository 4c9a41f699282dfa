// SPDX-License-Identifier: BSD-3-Clause
//
// What the commands that write files have in common on their command lines.
#pragma once

#include <CLI/CLI.hpp>
#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace etstream::cli {

/// Of all that write.
struct WriteOptions {
  bool no_sync = false;
  std::optional<std::uint64_t> max_memory;  // in bytes, as is
  std::optional<std::uint64_t> max_disk;
};

/// Of those that write one file.
struct OutputOptions : WriteOptions {
  std::string output;
  bool dry_run = false;
  bool json = false;
};

void add_write_options(CLI::App& command, WriteOptions& options);
/// Of those --max-memory and --max-disk, which need a plan.
std::array<CLI::Option*, 2> add_limits(CLI::App& command, WriteOptions& options);

/// `what` is written, to a path such as `example`.
void add_output_path(CLI::App& command, OutputOptions& options, const std::string& what,
                     const std::string& example);
void add_output_flags(CLI::App& command, OutputOptions& options);
/// Throws CLI11's errors where options don't go together.
void check_output(const CLI::App& command, const OutputOptions& options);

}  // namespace etstream::cli
