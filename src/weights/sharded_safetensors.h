// SPDX-License-Identifier: BSD-3-Clause
//
// The index of a checkpoint that is in several safetensors files (huggingface_hub's
// model.safetensors.index.json): {"metadata": {...}, "weight_map": {"NAME": "FILE", ...}}.
#pragma once

#include <string>

#include "etstream/byte_source.h"
#include "etstream/checkpoint.h"
#include "etstream/result.h"

namespace etstream {

/// The tensors that `index` lists, from the files in `folder` that it names, file by file by their names.
/// What a file has beyond what the index says is in it is left out, as those who load such checkpoints do.
/// Errors: kCorrupt for a file name that leads out of the folder and for a tensor that its file has not;
/// those of opening the files.
[[nodiscard]] Result<Checkpoint> open_sharded_safetensors(const ByteSource& index, const std::string& folder,
                                                          const OpenFile& open_file);

}  // namespace etstream
