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
/// Tensors of a file that the index does not list for it are left out, as in loaders of such checkpoints.
/// Errors: kCorrupt for a file name that leads out of the folder and for a tensor that its file has not;
/// those of opening the files.
[[nodiscard]] Result<Checkpoint> open_sharded_safetensors(const ByteSource& index, const std::string& folder,
                                                          const OpenFile& open_file);

}  // namespace etstream
