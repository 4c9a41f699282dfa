// SPDX-License-Identifier: BSD-3-Clause
//
// The segments behind a flatbuffer, which programs and tensor data files list alike.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/findings.h"
#include "etstream/segment_info.h"
#include "flatbuffer/table_reader.h"
#include "formats/segments/shared_fields.h"

namespace etstream {

/// Returns the listed segments, which are inside `file`; `use` is empty. `base_offset` is that of the header.
/// Errors: kCorrupt, kIo.
[[nodiscard]] Result<std::vector<SegmentInfo>> read_segments(const TableList& listed,
                                                             const DataSegmentFields& fields,
                                                             const ByteSource& file,
                                                             std::uint64_t base_offset);

/// Returns the power of two, up to 65536, that segments were aligned to, as far as their places show it. One
/// segment alone may lie at a multiple of more than that by chance: with one or none, returns at most 128,
/// ExecuTorch's default.
[[nodiscard]] std::uint64_t observed_alignment(std::span<const SegmentInfo> segments) noexcept;

/// The part of a file where segments may be.
struct SegmentRoom {
  std::string_view whole;  // what messages call all of it: "the program"
  std::uint64_t metadata_end = 0;
  std::uint64_t base_offset = 0;
  std::uint64_t data_size = 0;      // as the header says
  std::uint64_t size_position = 0;  // where it says so
};

/// Adds errors for segments in the metadata. Adds warnings for segments that overlap or are unaligned, for
/// bytes between them that are not zero, and for a data size that ends too early. Error: kIo.
[[nodiscard]] Result<void> check_segments(const FlatbufferView& view, const ByteSource& file,
                                          std::span<const SegmentInfo> segments, const SegmentRoom& room,
                                          Findings& findings);

}  // namespace etstream
