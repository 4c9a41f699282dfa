// SPDX-License-Identifier: BSD-3-Clause
//
// Flatbuffers whose vectors have a larger alignment than FlatBuffers' parser supports.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "etstream/result.h"
#include "flatbuffer/schema.h"

namespace etstream {

/// The largest force_align that FlatBuffers' parser, of version 2.0.8, accepts.
inline constexpr std::uint32_t kLargestParserAlignment = 32;

/// Returns whether a vector in `schema` has a larger alignment.
[[nodiscard]] bool exceeds_parser_alignment(const Schema& schema);

/// Rebuilds `flatbuffer`, in which no vector is aligned to more than the parser takes, with the alignments
/// that `schema` asks for. Objects keep their order and move by multiples of kLargestParserAlignment, so that
/// their own alignment stays. `name` is what messages call it. Errors: kCorrupt; kTooLarge for 2 GiB.
[[nodiscard]] Result<std::vector<std::byte>> raise_alignments(std::vector<std::byte> flatbuffer,
                                                              const Schema& schema, const std::string& name);

}  // namespace etstream
