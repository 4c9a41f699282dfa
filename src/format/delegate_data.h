// SPDX-License-Identifier: BSD-3-Clause
//
// The data of a program's delegates, moved into the flatbuffer or out of it.
#pragma once

#include <cstddef>
#include <set>
#include <vector>

#include "etstream/program.h"
#include "format/program_values.h"
#include "schema/flatbuffer_view.h"

namespace etstream {

struct DelegateMove {
  ProgramData::Delegates delegates;
  std::set<std::uint32_t> removed;       // segments that nothing refers to any more
  std::vector<ByteSource> new_segments;  // in the order of their indices
  std::size_t insert_at = 0;             // the segment, of those that are not removed, that they go before
};

/// All of it into the flatbuffer, in the order of the delegates; what shared a segment shares an entry.
/// `file` is the whole program, `segments` those of ProgramFile::segments(). Errors: kCorrupt for an index
/// that leads nowhere; kIo.
[[nodiscard]] Result<DelegateMove> move_delegates_inline(const FlatbufferView& view,
                                                         const std::vector<SegmentInfo>& segments,
                                                         const ByteSource& file);

/// All of it into segments, before those of named data, but for data of no bytes; equal data into one.
[[nodiscard]] Result<DelegateMove> move_delegates_to_segments(const FlatbufferView& view,
                                                              const std::vector<SegmentInfo>& segments);

}  // namespace etstream
