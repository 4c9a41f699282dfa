// SPDX-License-Identifier: BSD-3-Clause
//
// Extents and segments one after another at the end of a plan, and the alignments that callers may ask for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "etstream/result.h"
#include "etstream/sink.h"

namespace etstream {

/// Puts `bytes` in the place of the zeros that BackwardBuilder::finish() left for a header of as many bytes.
void fill_header(FilePlan& plan, std::vector<std::byte> bytes);

/// Refuses an alignment that is not a power of two up to `most`. Messages begin with `what`: "segment
/// alignment". Error: kInvalidArgument.
[[nodiscard]] Result<void> check_alignment(std::string_view what, std::uint32_t alignment,
                                           std::uint32_t most);

// Errors of the following: kTooLarge over 2^64 - 1 bytes.

/// Appends `source`, unless it is empty. `alignment` is what the format asks for there; the end of the plan
/// has it already.
[[nodiscard]] Result<void> append(FilePlan& plan, std::uint32_t alignment, std::string_view label,
                                  ByteSource source);

/// Brings the end to a multiple of `alignment`, a power of two, with zeros.
[[nodiscard]] Result<void> pad(FilePlan& plan, std::uint64_t alignment);

struct Segment {
  ByteSource source;
  std::uint32_t alignment = 1;  // of where it begins, a power of two
  std::string label;            // what it is used for
};

/// Returns the offset of each segment when they stand one after another.
[[nodiscard]] Result<std::vector<std::uint64_t>> place(const std::vector<Segment>& segments);

/// Appends the segments from the next multiple of `base_alignment` on, and returns that offset. `offsets` are
/// relative to it, ascending and apart. Zeros fill the gaps.
[[nodiscard]] Result<std::uint64_t> append(FilePlan& plan, const std::vector<Segment>& segments,
                                           const std::vector<std::uint64_t>& offsets,
                                           std::uint64_t base_alignment);

}  // namespace etstream
