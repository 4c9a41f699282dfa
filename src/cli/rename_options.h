// SPDX-License-Identifier: BSD-3-Clause
//
// The options that give the tensors of a checkpoint other names.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "etstream/checkpoint.h"
#include "etstream/result.h"

namespace etstream::cli {

struct RenameArguments {
  std::string rules;           // a file's path, or the name of ready-made ones; "" for none
  std::uint32_t head_dim = 0;  // 0 where config.json says it
};

void add_rename_options(CLI::App& command, RenameArguments& arguments);

/// Warns of rules that match no tensor and of tensors that no rule matches: with `list_all` each, otherwise
/// how many. Errors: those of RenameRules and apply().
[[nodiscard]] Result<void> apply_rename_rules(const RenameArguments& arguments, Checkpoint& checkpoint,
                                              bool list_all);

}  // namespace etstream::cli
