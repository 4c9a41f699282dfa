// SPDX-License-Identifier: BSD-3-Clause
//
// The segment of a program's constant tensors, with its tensors at multiples of another alignment.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "etstream/program.h"
#include "schema/table_reader.h"

namespace etstream {

struct ConstantSegment {
  std::uint64_t position = 0;  // of the program's SubsegmentOffsets that says where they are
  std::uint32_t segment = 0;
  std::vector<std::uint64_t> offsets;
  ByteSource source;
};

/// As ExecuTorch lays it out: each tensor padded to a multiple of `alignment`, a power of two, but for the
/// last. How long a tensor is its values say; data that no value refers to keeps the padding that it has.
/// Nothing where the program has no such segment. `root` is its root table, `file` all of it, `segments`
/// those of ProgramFile::segments(). Memory: 16 bytes a tensor. Errors: kCorrupt for an index or a tensor
/// that is not inside; kIo.
[[nodiscard]] Result<std::optional<ConstantSegment>> align_constants(const TableReader& root,
                                                                     const ByteSource& file,
                                                                     const std::vector<SegmentInfo>& segments,
                                                                     std::uint32_t alignment);

}  // namespace etstream
