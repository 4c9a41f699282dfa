// SPDX-License-Identifier: BSD-3-Clause
//
// Flatbuffers whose vectors have a larger alignment than their builder supports.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "etstream/result.h"
#include "flatbuffer/schema.h"

namespace etstream {

/// Whether a vector in `schema` has an alignment over `limit`.
[[nodiscard]] bool has_alignment_over(const Schema& schema, std::uint32_t limit);

/// Rebuilds `flatbuffer`, in which no vector is aligned to more than `limit`, with the alignments that
/// `schema` asks for. Objects keep their order and move by multiples of `limit`, so that their own alignment,
/// at most `limit`, stays. `name` is what messages call it. Errors: kCorrupt; kTooLarge for 2 GiB.
[[nodiscard]] Result<std::vector<std::byte>> raise_alignments(std::vector<std::byte> flatbuffer,
                                                              const Schema& schema, std::uint32_t limit,
                                                              const std::string& name);

}  // namespace etstream
