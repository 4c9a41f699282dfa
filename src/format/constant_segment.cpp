// SPDX-License-Identifier: BSD-3-Clause
#include "format/constant_segment.h"

#include <algorithm>

#include "base/checked.h"
#include "base/text.h"
#include "base/try.h"
#include "etstream/scalar_type.h"
#include "format/dimensions.h"

namespace etstream {
namespace {

/// Notes how long the data is that a value refers to, if it is a constant tensor.
Result<void> note_size(const TableReader& value, std::vector<std::optional<std::uint64_t>>& sizes) {
  ETSTREAM_ASSIGN(const auto tensor, value.member("val"));
  if (!tensor || tensor->type_name() != "Tensor") return {};
  ETSTREAM_ASSIGN(const auto buffer, tensor->scalar<std::uint32_t>("data_buffer_idx"));
  ETSTREAM_ASSIGN(const bool is_planned, tensor->has("allocation_info"));
  if (buffer == 0 || is_planned || buffer >= sizes.size()) return {};
  ETSTREAM_ASSIGN(const auto type, tensor->scalar<ScalarType>("scalar_type"));
  ETSTREAM_ASSIGN(const auto dimensions, tensor->values<std::int32_t>("sizes"));
  const auto bytes = byte_size(type, dimensions);
  if (!bytes) return tensor->corrupt("a constant tensor", bytes.error().message);
  sizes[buffer] = std::max(sizes[buffer].value_or(0), *bytes);
  return {};
}

/// How long the data of each piece is, by the values of all methods.
Result<std::vector<std::optional<std::uint64_t>>> sizes_by_values(const TableReader& root,
                                                                  std::size_t count) {
  std::vector<std::optional<std::uint64_t>> sizes(count);
  ETSTREAM_ASSIGN(const TableList plans, root.tables("execution_plan"));
  for (std::uint32_t i = 0; i < plans.size(); ++i) {
    ETSTREAM_ASSIGN(const TableReader plan, plans.at(i));
    ETSTREAM_ASSIGN(const TableList values, plan.tables("values"));
    for (std::uint32_t j = 0; j < values.size(); ++j) {
      ETSTREAM_ASSIGN(const TableReader value, values.at(j));
      ETSTREAM_TRY(note_size(value, sizes));
    }
  }
  return sizes;
}

/// Where the data of each piece is in the segment: without the padding behind it, where its length is known.
Result<std::vector<ByteSource>> pieces_of(const TableReader& table, const std::vector<std::uint64_t>& offsets,
                                          const std::vector<std::optional<std::uint64_t>>& sizes,
                                          const ByteSource& segment) {
  std::vector<ByteSource> pieces;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const std::uint64_t end = i + 1 < offsets.size() ? offsets[i + 1] : segment.size();
    const std::uint64_t room = end < offsets[i] ? 0 : end - offsets[i];
    const std::uint64_t size = sizes[i].value_or(room);
    if (!range_fits(offsets[i], size, segment.size()) || end < offsets[i] || size > room) {
      return table.corrupt(text("room for the ", size, " bytes of constant ", i, " in its segment"),
                           text(room));
    }
    ETSTREAM_ASSIGN(ByteSource piece, segment.slice(offsets[i], size));
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

}  // namespace

Result<std::optional<ConstantSegment>> align_constants(const TableReader& root, const ByteSource& file,
                                                       const std::vector<SegmentInfo>& segments,
                                                       std::uint32_t alignment) {
  ETSTREAM_ASSIGN(const auto table, root.child("constant_segment"));
  if (!table) return std::optional<ConstantSegment>();
  ConstantSegment out;
  out.position = table->position();
  ETSTREAM_ASSIGN(out.segment, table->scalar<std::uint32_t>("segment_index"));
  ETSTREAM_ASSIGN(const auto offsets, table->values<std::uint64_t>("offsets"));
  if (offsets.empty()) return std::optional<ConstantSegment>();
  if (out.segment >= segments.size()) {
    return table->corrupt(text("a segment below ", segments.size()), text(out.segment));
  }
  ETSTREAM_ASSIGN(const auto segment, file.slice(segments[out.segment].offset, segments[out.segment].size));
  ETSTREAM_ASSIGN(const auto sizes, sizes_by_values(root, offsets.size()));
  ETSTREAM_ASSIGN(const auto pieces, pieces_of(*table, offsets, sizes, segment));
  std::vector<ByteSource> parts;
  std::uint64_t end = 0;
  for (const ByteSource& piece : pieces) {
    const std::uint64_t padding = padding_to(end, alignment);
    parts.push_back(ByteSource::zeros(padding));
    out.offsets.push_back(end + padding);
    parts.push_back(piece);
    end = out.offsets.back() + piece.size();
  }
  ETSTREAM_ASSIGN(out.source, ByteSource::concatenation(std::move(parts)));
  return std::optional(std::move(out));
}

}  // namespace etstream
