// SPDX-License-Identifier: BSD-3-Clause
#include "pte/rewrite/program_planner.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/text.h"
#include "base/try.h"
#include "flatbuffer/schema_packer.h"
#include "layout/append.h"
#include "pte/rewrite/constant_segment.h"
#include "pte/rewrite/delegate_data.h"
#include "pte/rewrite/release_fields.h"

namespace etstream {
namespace {

class ProgramPlanner {
 public:
  ProgramPlanner(EditableProgram editable, const ProgramStyle& style)
      : editable_(std::move(editable)), style_(style) {}

  Result<FilePlan> run(const ProgramPlanOptions& options) {
    if (options.delegates == DelegateData::kInline) move_delegates_inline(editable_);
    if (options.delegates == DelegateData::kInSegments) ETSTREAM_TRY(move_delegates_to_segments(editable_));
    if (options.extract_constants) ETSTREAM_TRY(extract_constants());
    ETSTREAM_TRY(join_pieces(options.constant_tensor_alignment.has_value()));
    if (options.strict_alignment) set_own_alignments();
    base_alignment_ = style_.segments;
    for (const std::uint32_t i : editable_.order) {
      const EditableProgram::Segment& segment = editable_.segments[i];
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
    if (editable_.constants && !editable_.constants->offsets.empty()) return {};
    ETSTREAM_TRY(split_constants(editable_));
    // ExecuTorch loads no program without the placeholder.
    if (editable_.constants->pieces->empty()) editable_.constants->pieces->emplace_back();
    return {};
  }

  Result<void> join_pieces(bool align_constants) {
    if (align_constants && editable_.constants && !editable_.constants->offsets.empty()) {
      ETSTREAM_TRY(split_constants(editable_));
    }
    if (editable_.constants && editable_.constants->pieces) {
      ETSTREAM_TRY(join(editable_, *editable_.constants, style_.tensors));
    }
    for (EditableProgram::Subsegments& data : editable_.mutable_data) {
      if (data.pieces) ETSTREAM_TRY(join(editable_, data, 1));
    }
    return {};
  }

  /// What is in segments is aligned in the file as it would be in the flatbuffer.
  void set_own_alignments() {
    if (editable_.constants && editable_.constants->segment) {
      editable_.segments[*editable_.constants->segment].alignment = style_.tensors;
    }
    for (const DelegateReference& reference : editable_.delegates) {
      if (!reference.in_segment) continue;
      std::uint32_t& alignment = editable_.segments[reference.index].alignment;
      alignment = std::max(alignment, style_.delegates);
    }
  }

  /// Segments stay where they are, if all of them are there as they were, in order and apart.
  bool keep_places() {
    if (editable_.order.size() != editable_.segments.size()) return false;
    std::uint64_t end = 0;
    for (const std::uint32_t i : editable_.order) {
      const EditableProgram::Segment& segment = editable_.segments[i];
      if (!segment.offset || *segment.offset < end) {
        offsets_.clear();
        return false;
      }
      offsets_.push_back(*segment.offset);
      end = *segment.offset + segment.source.size();
    }
    return true;
  }

  Result<FilePlan> assemble() {
    std::vector<PlacedSegment> placed;
    for (std::size_t i = 0; i < segments_.size(); ++i) {
      placed.push_back({offsets_[i], segments_[i].source.size()});
    }
    const bool has_header = std::any_of(placed.begin(), placed.end(),
                                        [](const PlacedSegment& segment) { return segment.size > 0; });
    ETSTREAM_ASSIGN(const TableView root, editable_.program.view().root());
    EditedValues values(editable_.program.view(), root);
    ETSTREAM_TRY(set_values(editable_, placed, values));
    ReleaseFields known(editable_.program.fields(), values, style_.writer.release);
    auto packed = pack_program(editable_.program, known, style_, has_header);
    if (!packed && packed.error().code == ErrorCode::kTooLarge) {
      packed.error().message += "; have the data of delegates in segments, which may be of any size";
    }
    if (!packed || !has_header) return packed;
    return append_segments(std::move(packed).value());
  }

  Result<FilePlan> append_segments(FilePlan plan) {
    ExtendedHeader header;
    header.length = ExtendedHeader::kSize;
    header.program_size = plan.size;
    ETSTREAM_ASSIGN(header.segment_base_offset, append(plan, segments_, offsets_, base_alignment_));
    header.segment_data_size = plan.size - header.segment_base_offset;
    put_header(plan, header, style_);
    plan.payload_size = plan.size - plan.metadata_size;
    return plan;
  }

  EditableProgram editable_;
  const ProgramStyle style_;
  std::vector<Segment> segments_;       // in file order
  std::vector<std::uint64_t> offsets_;  // of them, from the first one on
  std::uint32_t base_alignment_ = 1;    // of the first one in the file
};

Result<void> check_if_given(std::string_view what, std::optional<std::uint32_t> alignment,
                            std::uint32_t most) {
  return alignment ? check_alignment(what, *alignment, most) : Result<void>();
}

}  // namespace

ProgramStyle with_options(ProgramStyle style, const ProgramPlanOptions& options) {
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

Result<void> check(const ProgramPlanOptions& options) {
  ETSTREAM_TRY(check_if_given("segment alignment", options.segment_alignment, kMostSegmentAlignment));
  ETSTREAM_TRY(
      check_if_given("constant tensor alignment", options.constant_tensor_alignment, kMostInlineAlignment));
  return check_if_given("delegate alignment", options.delegate_alignment, kMostInlineAlignment);
}

Result<FilePlan> lay_out(EditableProgram editable, const ProgramStyle& observed,
                         const ProgramPlanOptions& options) {
  return ProgramPlanner(std::move(editable), with_options(observed, options)).run(options);
}

Result<FilePlan> pack_program(const pte::Program& program, ValueReader& values, const ProgramStyle& style,
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

void put_header(FilePlan& flatbuffer, const ExtendedHeader& header, const ProgramStyle& style) {
  std::vector<std::byte> bytes(style.header);
  write_extended_header(header, bytes);
  flatbuffer.extents[1].source = ByteSource::owned(std::move(bytes));
}

}  // namespace etstream
