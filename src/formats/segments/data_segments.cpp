// SPDX-License-Identifier: BSD-3-Clause
#include "formats/segments/data_segments.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/base/checked.h"
#include "core/base/findings.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/read_pieces.h"
#include "etstream/tensor.h"
#include "formats/tensor/dimensions.h"

namespace etstream {

Result<ExtendedHeader> read_extended_header(const ByteSource& file, const std::string& name) {
  ExtendedHeader header;
  header.program_size = file.size();
  std::array<std::byte, ExtendedHeader::kSize> bytes{};
  const auto magic = std::as_bytes(std::span(ExtendedHeader::kMagic));
  if (file.size() < ExtendedHeader::kPosition + bytes.size()) return header;
  ETSTREAM_TRY(file.read_at(ExtendedHeader::kPosition, bytes));
  if (!std::equal(magic.begin(), magic.end(), bytes.begin())) return header;
  const auto field = [&](std::size_t offset, auto& out) {
    std::memcpy(&out, bytes.data() + offset, sizeof(out));
  };
  const auto corrupt = [&]<class... Arguments>(std::size_t offset, Template<Arguments...> words,
                                               const Arguments&... arguments) {
    return unexpected(ErrorCode::kCorrupt, {name, ExtendedHeader::kPosition + offset, "extended header"},
                      words, arguments...);
  };
  field(4, header.length);
  if (header.length < ExtendedHeader::kSmallest) {
    return corrupt(4, "a length of at least {}, found {}", ExtendedHeader::kSmallest, header.length);
  }
  field(8, header.program_size);
  field(16, header.segment_base_offset);
  if (header.length >= ExtendedHeader::kSize) field(24, header.segment_data_size);
  if (header.program_size > file.size()) {
    return corrupt(8, "a program size inside the file's {} bytes, found {}", file.size(),
                   header.program_size);
  }
  // Each segment is checked when it is read; older writers omitted the size.
  if (header.segment_data_size != 0 &&
      !range_fits(header.segment_base_offset, header.segment_data_size, file.size())) {
    return corrupt(16, "segments inside the file's {} bytes, found {} bytes from {} on", file.size(),
                   header.segment_data_size, header.segment_base_offset);
  }
  if (header.segment_base_offset != 0 && header.segment_base_offset < header.program_size) {
    return corrupt(16, "segments behind the program's {} bytes, found them from {} on", header.program_size,
                   header.segment_base_offset);
  }
  return header;
}

void write_extended_header(const ExtendedHeader& header, std::span<std::byte> out) {
  const auto put = [&](std::size_t offset, const auto& value) {
    std::memcpy(out.data() + offset, &value, sizeof(value));
  };
  std::memcpy(out.data(), ExtendedHeader::kMagic.data(), ExtendedHeader::kMagic.size());
  put(4, header.length);
  put(8, header.program_size);
  put(16, header.segment_base_offset);
  put(24, header.segment_data_size);
}

Result<std::vector<SegmentInfo>> read_segments(const TableList& listed, const DataSegmentFields& fields,
                                               const ByteSource& file, std::uint64_t base_offset) {
  std::vector<SegmentInfo> segments;
  ETSTREAM_TRY(for_each(listed, [&](const TableReader& segment) -> Result<void> {
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
    return {};
  }));
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

Result<TensorLayout> read_tensor_layout(const TableReader& tensor, const ShapeFields& fields) {
  TensorLayout layout;
  for (const BoundField* const field : {&fields.sizes, &fields.dim_order}) {
    ETSTREAM_ASSIGN(const auto vector, tensor.vector(*field));
    if (!vector || vector->count <= kMostDimensions) continue;
    return tensor.corrupt(text("at most {} dimensions in {}", kMostDimensions, field->full_name()),
                          text("{}", vector->count));
  }
  ETSTREAM_ASSIGN(layout.scalar_type, tensor.scalar<ScalarType>(fields.scalar_type));
  ETSTREAM_ASSIGN(layout.sizes, tensor.values<std::int32_t>(fields.sizes));
  ETSTREAM_ASSIGN(layout.dim_order, tensor.values<std::uint8_t>(fields.dim_order));
  return layout;
}

Result<std::optional<std::uint64_t>> check_shape(const TableReader& tensor, const ShapeFields& fields,
                                                 Findings& findings) {
  const auto error = [&](std::string_view expected, std::string_view found) {
    add_error(findings, tensor.corrupt(expected, found));
    return std::optional<std::uint64_t>();
  };
  ETSTREAM_ASSIGN(const auto sizes_vector, tensor.vector(fields.sizes));
  ETSTREAM_ASSIGN(const auto order_vector, tensor.vector(fields.dim_order));
  const std::uint64_t dimensions = sizes_vector ? sizes_vector->count : 0;
  if (!sizes_vector || dimensions > kMostDimensions) {
    return error(text("{} of at most {} dimensions", fields.sizes.full_name(), kMostDimensions),
                 sizes_vector ? std::to_string(dimensions) : "none");
  }
  if (!order_vector || order_vector->count != dimensions) {
    return error(text("{} of {} dimensions", fields.dim_order.full_name(), dimensions),
                 order_vector ? std::to_string(order_vector->count) : "none");
  }
  ETSTREAM_ASSIGN(const auto sizes, tensor.values<std::int32_t>(fields.sizes));
  ETSTREAM_ASSIGN(const auto order, tensor.values<std::uint8_t>(fields.dim_order));
  if (!is_permutation(order, dimensions))
    error(text("{} that is a permutation", fields.dim_order.full_name()), "another");
  ETSTREAM_ASSIGN(const auto type, tensor.scalar<ScalarType>(fields.scalar_type));
  const auto bytes = byte_size(type, sizes);
  if (!bytes) return error("a tensor of known type and size", bytes.error().message);
  return std::optional(*bytes);
}

}  // namespace etstream
