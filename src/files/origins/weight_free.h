// SPDX-License-Identifier: BSD-3-Clause
//
// Payloads that depend on no weight: masks, tables of positions, frequencies that a model's config gives.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/result.h"
#include "etstream/tensor.h"

namespace etstream {

/// Describes the elements of `data` if no weights can be behind them: "no elements", "the number 0.125",
/// "numbers from 0 in steps of 1", "a mask of 0 and 1", "cosines of positions". Returns "" for others. Reads
/// the data up to 3 times. Error: that of reading.
[[nodiscard]] Result<std::string> describe_weight_free(const ByteSource& data, const TensorLayout& layout);

/// Returns the inverse frequencies of rotary embeddings (RoPE), which transformers computes when it loads a
/// model and saves in no checkpoint, by the config.json beside the checkpoint: plain, linear, dynamic,
/// llama3, yarn and longrope, bit for bit as torch 2.13 does on CPUs. There are several, with different
/// names, where layers have frequencies of their own, and as torch's vectors and the C library round powers
/// differently. Returns nothing if there is no config.json, or it does not say them; none for a kind that is
/// not known. Errors: those of reading it.
[[nodiscard]] Result<std::optional<std::vector<CheckpointTensor>>> read_frequencies(
    const Checkpoint& checkpoint);
/// Returns plain and linear ones that may be these float32, as their bytes say: see above.
[[nodiscard]] Result<std::vector<CheckpointTensor>> frequencies_like(const ByteSource& data);

}  // namespace etstream
