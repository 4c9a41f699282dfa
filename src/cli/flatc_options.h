// SPDX-License-Identifier: BSD-3-Clause
//
// What `compile` and `decompile` have in common: flatc's arguments, as ExecuTorch gives them, and its names
// of files.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cli/output_options.h"
#include "etstream/result.h"

namespace etstream::cli {

struct FlatcOptions : WriteOptions {
  std::string schema;
  std::vector<std::string> include_folders;
  std::vector<std::string> inputs;
  std::string output;
};

/// `input` is what the files to be read are called, and `what` tells of them.
void add_flatc_options(CLI::App& command, FlatcOptions& options, const std::string& input,
                       const std::string& what);
/// A flag that asks flatc for what the command always does.
void add_told_flag(CLI::App& command, const std::string& name);
/// Throws CLI11's errors where the output is no folder and there are several inputs.
void check_flatc_options(const FlatcOptions& options);

/// All of a file. Error: kTooLarge over `limit` bytes.
[[nodiscard]] Result<std::vector<std::byte>> content_of(const std::string& path, std::uint64_t limit);

/// Where what each of the inputs becomes goes: to the output, or to FOLDER/STEM.EXTENSION where that is a
/// folder, which is made. Notes the inputs, none of which an output may be. Errors: kIo; kInvalidArgument
/// where two go to one place.
[[nodiscard]] Result<std::vector<std::string>> output_paths(const FlatcOptions& options,
                                                            const std::string& extension);

/// Writes what `input` has become to where it goes, `path`. `is_text` is fit for a terminal.
[[nodiscard]] Result<void> write_content(const FlatcOptions& options, const std::string& input,
                                         const std::string& path, std::vector<std::byte> content,
                                         bool is_text);

}  // namespace etstream::cli
