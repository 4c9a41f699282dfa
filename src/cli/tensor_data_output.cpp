// SPDX-License-Identifier: BSD-3-Clause
#include "cli/tensor_data_output.h"

#include <nlohmann/json.hpp>

#include "cli/options.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/tensor_data_shards.h"
#include "present/print.h"

namespace etstream::cli {

std::uint64_t TensorDataOutput::size() const {
  std::uint64_t out = 0;
  for (const File& file : files) out += file.plan.size;
  return out;
}

std::vector<Output> TensorDataOutput::outputs() const {
  std::vector<Output> out;
  out.reserve(files.size());
  for (const File& file : files) out.push_back({&file.plan, is_named ? file.path : std::string()});
  return out;
}

CLI::Option* add_split_option(CLI::App& command, std::optional<std::uint64_t>& most) {
  return add_size(
      command, "--split-max-size", most,
      "Write several files, NAME-00001-of-00003.ptd, with at most this much data each, such as 2G");
}

Result<TensorDataOutput> plan_tensor_data_output(const TensorData& data, const std::string& path,
                                                 std::optional<std::uint64_t> most) {
  TensorDataOutput out;
  if (!most) {
    ETSTREAM_ASSIGN(FilePlan planned, plan(data));
    out.files.push_back({path, std::move(planned), data.entries.size()});
    return out;
  }
  if (is_standard_output(path)) {
    return make_error(ErrorCode::kInvalidArgument,
                      "--split-max-size: several files can't go to standard output; name one");
  }
  out.is_split = true;
  ETSTREAM_ASSIGN(const std::vector<TensorData> shards, split(data, *most));
  // A plan that is only shown needs no name.
  out.is_named = !path.empty();
  const std::string base = path.empty() ? "weights.ptd" : path;
  const auto count = static_cast<std::uint32_t>(shards.size());
  for (std::uint32_t i = 0; i < count; ++i) {
    ETSTREAM_ASSIGN(FilePlan planned, plan(shards[i]));
    out.files.push_back({shard_path(base, i + 1, count), std::move(planned), shards[i].entries.size()});
  }
  return out;
}

void print_shards(const TensorDataOutput& output) {
  for (const TensorDataOutput::File& file : output.files) {
    say("{}: {}, {}\n", file.path, counted(file.keys, "key"), readable_size(file.plan.size));
  }
}

nlohmann::ordered_json shards_to_json(const TensorDataOutput& output) {
  auto out = nlohmann::ordered_json::array();
  for (const TensorDataOutput::File& file : output.files) {
    out.push_back({{"output", file.path}, {"size", file.plan.size}, {"keys", file.keys}});
  }
  return out;
}

}  // namespace etstream::cli
