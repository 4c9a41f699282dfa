// SPDX-License-Identifier: BSD-3-Clause
#include "pte/rewrite/program_planner.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/checked.h"
#include "base/text.h"
#include "base/try.h"
#include "flatbuffer/schema_packer.h"
#include "layout/segments.h"
#include "pte/rewrite/constant_segment.h"
#include "pte/rewrite/delegate_data.h"
#include "pte/rewrite/release_fields.h"

namespace etstream {
namespace {

/// What is asked for in place of what was observed.
ProgramStyle with_options(ProgramStyle style, const ProgramLayoutOptions& options) {
  style.writer.release = options.as_of.value_or(style.writer.release);
  style.writer.vtables = options.vtables.value_or(style.writer.vtables);
  style.segments = options.segment_alignment.value_or(style.segments);
  if (!options.constant_tensor_alignment && !options.delegate_alignment) return style;
  if (options.constant_tensor_alignment) {
    style.tensors = *options.constant_tensor_alignment;
    style.header_is_for_tensors = true;
  }
  style.delegates = options.delegate_alignment.value_or(style.delegates);
  style.header =
      std::max({ExtendedHeader::kSize, style.delegates, style.header_is_for_tensors ? style.tensors : 1});
  return style;
}

class ProgramPlanner {
 public:
  ProgramPlanner(ProgramDraft draft, const ProgramStyle& style) : draft_(std::move(draft)), style_(style) {}

  Result<Layout> run(const ProgramLayoutOptions& options) {
    if (options.delegates == DelegateData::kInline) move_delegates_inline(draft_);
    if (options.delegates == DelegateData::kInSegments) ETSTREAM_TRY(move_delegates_to_segments(draft_));
    if (options.extract_constants) ETSTREAM_TRY(extract_constants());
    ETSTREAM_TRY(join_pieces(options.constant_tensor_alignment.has_value()));
    if (options.strict_alignment) set_own_alignments();
    base_alignment_ = style_.segments;
    for (const std::uint32_t i : draft_.order) {
      const ProgramDraft::Segment& segment = draft_.segments[i];
      const std::uint32_t alignment = std::max(style_.segments, segment.alignment);
      segments_.push_back({segment.source, alignment, segment.label});
      // ExecuTorch aligns segments from the first one on, and that to less.
      if (options.strict_alignment) base_alignment_ = std::max(base_alignment_, alignment);
    }
    if (options.segment_alignment || options.strict_alignment || !keep_places()) {
      ETSTREAM_ASSIGN(offsets_, place(segments_));
    }
    return assemble();
  }

 private:
  Result<void> extract_constants() {
    if (draft_.constants && !draft_.constants->offsets.empty()) return {};
    ETSTREAM_TRY(split_constants(draft_));
    // ExecuTorch loads no program without the placeholder.
    if (draft_.constants->pieces->empty()) draft_.constants->pieces->emplace_back();
    return {};
  }

  Result<void> join_pieces(bool align_constants) {
    if (align_constants && draft_.constants && !draft_.constants->offsets.empty()) {
      ETSTREAM_TRY(split_constants(draft_));
    }
    if (draft_.constants && draft_.constants->pieces) {
      ETSTREAM_TRY(join(draft_, *draft_.constants, style_.tensors));
    }
    for (ProgramDraft::Subsegments& data : draft_.mutable_data) {
      if (data.pieces) ETSTREAM_TRY(join(draft_, data, 1));
    }
    return {};
  }

  /// What is in segments is aligned in the file as it would be in the flatbuffer.
  void set_own_alignments() {
    if (draft_.constants && draft_.constants->segment) {
      draft_.segments[*draft_.constants->segment].alignment = style_.tensors;
    }
    for (const DelegateReference& reference : draft_.delegates) {
      if (!reference.in_segment) continue;
      std::uint32_t& alignment = draft_.segments[reference.index].alignment;
      alignment = std::max(alignment, style_.delegates);
    }
  }

  /// Segments stay where they are, if all of them are there as they were, in order and apart.
  bool keep_places() {
    if (draft_.order.size() != draft_.segments.size()) return false;
    std::uint64_t end = 0;
    for (const std::uint32_t i : draft_.order) {
      const ProgramDraft::Segment& segment = draft_.segments[i];
      if (!segment.offset || *segment.offset < end) {
        offsets_.clear();
        return false;
      }
      offsets_.push_back(*segment.offset);
      end = *segment.offset + segment.source.size();
    }
    return true;
  }

  Result<Layout> assemble() {
    std::vector<PlacedSegment> placed;
    for (std::size_t i = 0; i < segments_.size(); ++i) {
      placed.push_back({offsets_[i], segments_[i].source.size()});
    }
    const bool has_header = std::any_of(placed.begin(), placed.end(),
                                        [](const PlacedSegment& segment) { return segment.size > 0; });
    ETSTREAM_ASSIGN(const TableView root, draft_.program.view().root());
    EditedValues values(draft_.program.view(), root);
    ETSTREAM_TRY(set_values(draft_, placed, values));
    ReleaseFields known(draft_.program.fields(), values, style_.writer.release);
    auto packed = pack_program(draft_.program, known, style_, has_header);
    if (!packed && packed.error().code == ErrorCode::kTooLarge) {
      return make_error(ErrorCode::kTooLarge, packed.error().message,
                        "; have the data of delegates in segments, which may be of any size");
    }
    if (!packed || !has_header) return packed;
    return append_segments(std::move(packed).value());
  }

  Result<Layout> append_segments(Layout layout) {
    ExtendedHeader header;
    header.length = ExtendedHeader::kSize;
    header.program_size = layout.size;
    ETSTREAM_ASSIGN(header.segment_base_offset, append(layout, segments_, offsets_, base_alignment_));
    header.segment_data_size = layout.size - header.segment_base_offset;
    put_header(layout, header, style_);
    layout.payload_size = layout.size - layout.metadata_size;
    return layout;
  }

  ProgramDraft draft_;
  const ProgramStyle style_;
  std::vector<Segment> segments_;       // in file order
  std::vector<std::uint64_t> offsets_;  // of them, from the first one on
  std::uint32_t base_alignment_ = 1;    // of the first one in the file
};

Result<void> check_alignment(std::string_view what, std::optional<std::uint32_t> alignment,
                             std::uint32_t most) {
  if (!alignment || (is_power_of_two(*alignment) && *alignment <= most)) return {};
  return make_error(ErrorCode::kInvalidArgument, what, " alignment ", *alignment,
                    ": expected a power of two from 1 to ", most);
}

}  // namespace

Result<void> check(const ProgramLayoutOptions& options) {
  ETSTREAM_TRY(check_alignment("segment", options.segment_alignment, kMostSegmentAlignment));
  ETSTREAM_TRY(check_alignment("constant tensor", options.constant_tensor_alignment, kMostInlineAlignment));
  return check_alignment("delegate", options.delegate_alignment, kMostInlineAlignment);
}

Result<Layout> lay_out(ProgramDraft draft, const ProgramStyle& observed,
                       const ProgramLayoutOptions& options) {
  return ProgramPlanner(std::move(draft), with_options(observed, options)).run(options);
}

Result<Layout> pack_program(const pte::Program& program, ValueReader& values, const ProgramStyle& style,
                            bool has_header) {
  Schema schema = program.view().schema();
  const BoundField& data = program.fields().inline_delegate.data;
  ETSTREAM_TRY(schema.set_alignment(data.table_name(), data.name(), style.delegates));
  PackOptions options;
  options.header_size = has_header ? style.header : 0;
  // Until 1.1 programs went through JSON and flatc.
  if (style.writer.release <= ExecutorchRelease::k1_1) options.order = ObjectOrder::kFlatc;
  options.vtables = style.writer.vtables;
  return pack(schema, values, options);
}

void put_header(Layout& flatbuffer, const ExtendedHeader& header, const ProgramStyle& style) {
  std::vector<std::byte> bytes(style.header);
  write_extended_header(header, bytes);
  flatbuffer.extents[1].source = ByteSource::owned(std::move(bytes));
}

}  // namespace etstream
