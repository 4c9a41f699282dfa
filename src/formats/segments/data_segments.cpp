// SPDX-License-Identifier: BSD-3-Clause
#include "formats/segments/data_segments.h"

#include <algorithm>

#include "core/base/checked.h"
#include "core/base/findings.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/paged_reader.h"

namespace etstream {

Result<std::vector<SegmentInfo>> read_segments(const TableList& listed, const DataSegmentFields& fields,
                                               const ByteSource& file, std::uint64_t base_offset) {
  std::vector<SegmentInfo> segments;
  for (std::uint32_t i = 0; i < listed.size(); ++i) {
    ETSTREAM_ASSIGN(const TableReader segment, listed.at(i));
    SegmentInfo info;
    ETSTREAM_ASSIGN(const auto offset, segment.scalar<std::uint64_t>(fields.offset));
    ETSTREAM_ASSIGN(info.size, segment.scalar<std::uint64_t>(fields.size));
    const auto start = checked_add(base_offset, offset);
    if (!start || !range_fits(*start, info.size, file.size())) {
      return segment.corrupt(
          text("a segment inside the file's {} bytes", file.size()),
          text("{} bytes from {} + the base offset {} on", info.size, offset, base_offset));
    }
    info.offset = *start;
    segments.push_back(std::move(info));
  }
  return segments;
}

std::uint64_t observed_alignment(std::span<const SegmentInfo> segments) noexcept {
  constexpr std::uint64_t kMost = 65536;
  constexpr std::uint64_t kDefault = 128;
  std::uint64_t alignment = kMost;
  int seen = 0;
  for (const SegmentInfo& segment : segments) {
    if (segment.size == 0) continue;
    ++seen;
    while (segment.offset % alignment != 0) alignment /= 2;
  }
  return seen > 1 ? alignment : std::min(alignment, kDefault);
}

Result<void> check_segments(const FlatbufferView& view, const ByteSource& file,
                            std::span<const SegmentInfo> segments, const SegmentRoom& room,
                            Findings& findings) {
  constexpr std::uint64_t kWeakAlignment = 16;  // below it kernels may not read tensors in place
  const auto warning = [&](std::uint64_t position, std::string_view expected, std::string_view found) {
    add_warning(findings, view.corrupt(position, expected, found));
  };
  std::vector<const SegmentInfo*> in_file;
  for (const SegmentInfo& segment : segments) {
    if (segment.size != 0) in_file.push_back(&segment);
  }
  std::stable_sort(in_file.begin(), in_file.end(),
                   [](const SegmentInfo* a, const SegmentInfo* b) { return a->offset < b->offset; });
  std::uint64_t end = room.metadata_end;
  for (const SegmentInfo* segment : in_file) {
    const std::uint64_t offset = segment->offset;
    const std::string found = counted(segment->size, "byte") + " of one";
    if (offset < room.metadata_end) {
      // Otherwise weights would be read from the flatbuffer.
      const auto expected =
          text("no segment before offset {}, where what comes before it ends", room.metadata_end);
      add_error(findings, view.corrupt(offset, expected, found));
    } else if (offset < end) {
      warning(offset, text("no segment before offset {}, where what comes before it ends", end), found);
    } else {
      ETSTREAM_ASSIGN(const auto wrong, find_nonzero(file, end, offset));
      if (wrong)
        warning(wrong->offset, "zero, in the padding before a segment", std::to_string(wrong->value));
    }
    if (offset % kWeakAlignment != 0) {
      warning(offset, text("a segment at a multiple of {}", kWeakAlignment), "one that is not");
    }
    end = std::max(end, offset + segment->size);
  }
  const std::uint64_t announced = room.base_offset + room.data_size;
  if (room.data_size != 0 && announced < end) {
    warning(room.size_position, text("a segment data size that reaches to {} at least", end),
            std::to_string(room.data_size));
  }
  const std::uint64_t last = std::max(end, announced);
  if (file.size() > last) {
    const std::string found = counted(file.size() - last, "byte") + " that nothing refers to";
    warning(last, text("the end of {}", room.whole), found);
  }
  return {};
}

}  // namespace etstream
