// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/checkpoint.h"

#include <iterator>
#include <utility>

#include "core/base/try.h"
#include "formats/checkpoint/checkpoint_folder.h"
#include "formats/checkpoint/weight_sets.h"

namespace etstream {
namespace {

Checkpoint checkpoint_of(GivenWeights given) {
  Checkpoint out;
  if (!given.index.empty()) out.files.push_back(given.index);
  for (WeightFile& file : given.files) {
    out.files.push_back(std::move(file.path));
    std::ranges::move(file.tensors, std::back_inserter(out.tensors));
  }
  note_scales(out.tensors);
  return out;
}

}  // namespace

Result<std::vector<Checkpoint>> open_checkpoints(const std::vector<std::string>& paths,
                                                 const CheckpointOptions& options) {
  return without_exceptions([&]() -> Result<std::vector<Checkpoint>> {
    ETSTREAM_ASSIGN(OpenedWeights opened, open_weights(paths, options));
    if (!opened.problems.empty()) return std::move(opened.problems.front());
    std::vector<Checkpoint> out;
    out.reserve(opened.given.size());
    for (GivenWeights& given : opened.given) out.push_back(checkpoint_of(std::move(given)));
    return out;
  });
}

Result<Checkpoint> open_checkpoint(const std::string& path, const CheckpointOptions& options) {
  ETSTREAM_ASSIGN(auto opened, open_checkpoints({path}, options));
  return std::move(opened.front());
}

Result<WeightPaths> find_weights(const std::vector<std::string>& paths, const CheckpointOptions& options) {
  return without_exceptions([&]() -> Result<WeightPaths> {
    ETSTREAM_ASSIGN(OpenedWeights opened, open_weights(paths, options, OtherFiles::kLeft));
    WeightPaths out;
    for (const GivenWeights& given : opened.given) {
      for (const WeightFile& file : given.files) out.files.push_back(file.path);
    }
    out.problems = std::move(opened.problems);
    return out;
  });
}

Result<std::vector<std::string>> whole_sets(const std::vector<std::string>& paths,
                                            const CheckpointOptions& options) {
  ETSTREAM_ASSIGN(WeightPaths found, find_weights(paths, options));
  if (!found.problems.empty()) return std::move(found.problems.front());
  return std::move(found.files);
}

}  // namespace etstream
