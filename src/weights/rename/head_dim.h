// SPDX-License-Identifier: BSD-3-Clause
//
// How many rows of a projection make up an attention head, from what lies beside a checkpoint.
#pragma once

#include <cstdint>
#include <optional>

#include "etstream/byte_source.h"
#include "etstream/result.h"

namespace etstream {

/// From Hugging Face's config.json: "head_dim", or "hidden_size" over "num_attention_heads"; none if it has
/// neither. Errors: kCorrupt for what is not JSON, those of reading.
[[nodiscard]] Result<std::optional<std::uint32_t>> read_head_dim(const ByteSource& config);

}  // namespace etstream
