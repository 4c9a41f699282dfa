// SPDX-License-Identifier: BSD-3-Clause
//
// --metadata KEY=VALUE, of the commands that write a program.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/result.h"

namespace etstream::cli {

/// Into `given`, which outlives the command.
void add_metadata_option(CLI::App& command, std::vector<std::string>& given);

/// The bytes of the values, by their keys; those of @FILE are its content. Errors: kInvalidArgument for what
/// is no KEY=VALUE, or has a key that comes twice; those of opening a file.
[[nodiscard]] Result<std::map<std::string, ByteSource>> read_metadata_options(
    const std::vector<std::string>& given);

}  // namespace etstream::cli
