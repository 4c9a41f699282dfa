// SPDX-License-Identifier: BSD-3-Clause
//
// CheckpointIndex: the index of a checkpoint in several files, as huggingface_hub writes it
// (model.safetensors.index.json): {"metadata": {"total_size": 10}, "weight_map": {"NAME": "FILE", ...}}.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/result.h"

namespace etstream {

struct CheckpointIndex {
  /// The names of the tensors of each file, by its name. The files are beside the index.
  std::map<std::string, std::vector<std::string>, std::less<>> files;
  std::optional<std::uint64_t> total_size;  // of the tensors' bytes
};

/// Returns nothing for an object without a weight_map. Errors: kCorrupt for a file that is not JSON, for a
/// name that is no file's beside the index, and for a tensor that comes twice; those of reading.
[[nodiscard]] Result<std::optional<CheckpointIndex>> read_checkpoint_index(const ByteSource& file);

}  // namespace etstream
