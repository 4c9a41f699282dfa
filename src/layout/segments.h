// SPDX-License-Identifier: BSD-3-Clause
//
// Segments behind a flatbuffer: where they lie, and their extents.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "etstream/file_plan.h"
#include "etstream/result.h"

namespace etstream {

struct Segment {
  ByteSource source;
  std::uint32_t alignment = 1;  // of where it begins, a power of two
  std::string label;            // what it is used for
};

/// Where each begins, from the first one on, one after another. Error: kTooLarge over 2^64 - 1 bytes.
[[nodiscard]] Result<std::vector<std::uint64_t>> place(const std::vector<Segment>& segments);

/// Appends the segments from the next multiple of `base_alignment` on, and returns that offset. `offsets` are
/// relative to it, ascending and apart. Zeros fill the gaps. Error: kTooLarge over 2^64 - 1
/// bytes.
[[nodiscard]] Result<std::uint64_t> append(FilePlan& plan, const std::vector<Segment>& segments,
                                           const std::vector<std::uint64_t>& offsets,
                                           std::uint64_t base_alignment);

}  // namespace etstream
