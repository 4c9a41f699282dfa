// SPDX-License-Identifier: BSD-3-Clause
//
// Tensor data as one file, or as the shards that --split-max-size asks for.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <deque>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/output.h"
#include "etstream/file_plan.h"
#include "etstream/result.h"
#include "etstream/tensor_data.h"

namespace etstream::cli {

struct TensorDataOutput {
  struct File {
    std::string path;
    FilePlan plan;
    std::size_t keys = 0;
  };
  std::deque<File> files;
  bool is_split = false;
  bool is_named = true;  // or the paths of shards are examples

  [[nodiscard]] std::uint64_t size() const;
  /// Returns the outputs, which refer to this; without paths if they are not named.
  [[nodiscard]] std::vector<Output> outputs() const;
};

/// Adds an option that sets `most`, which outlives the command.
CLI::Option* add_split_option(CLI::App& command, std::optional<std::uint64_t>& most);

/// Plans a file at `path`, or its shards with data of at most `most` bytes each. Errors: those of split() and
/// of plan(); kInvalidArgument for shards to standard output.
[[nodiscard]] Result<TensorDataOutput> plan_tensor_data_output(const TensorData& data,
                                                               const std::string& path,
                                                               std::optional<std::uint64_t> most);

/// Prints the files with their contents, a line each, or returns them as JSON.
void print_shards(const TensorDataOutput& output);
[[nodiscard]] nlohmann::ordered_json shards_to_json(const TensorDataOutput& output);

}  // namespace etstream::cli
