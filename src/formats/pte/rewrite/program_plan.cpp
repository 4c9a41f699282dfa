// SPDX-License-Identifier: BSD-3-Clause
#include "formats/pte/rewrite/program_plan.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "core/base/text.h"
#include "core/base/try.h"
#include "core/layout/append.h"
#include "etstream/program_changes.h"
#include "flatbuffer/schema_packer.h"
#include "formats/pte/rewrite/constant_segment.h"
#include "formats/pte/rewrite/delegate_data.h"

namespace etstream {
namespace {

/// Passes on the values of `values`, which outlives it. field() refuses a value other than the default in a
/// field that is newer than `release`, with kInvalidArgument.
class ReleaseFields final : public ValueReader {
 public:
  ReleaseFields(const program::Fields& fields, ValueReader& values, ExecutorchRelease release)
      : values_(values), release_(release) {
    if (release >= ExecutorchRelease::k1_3) return;
    // The fields of program.fbs that are newer than 1.0 and matter. Newer tables are reached only through
    // them.
    newer_ = {fields.extra_tensor_info.device_type, fields.extra_tensor_info.device_index,
              fields.execution_plan.non_const_buffer_device};
  }

  ValueNode root() override { return values_.root(); }
  bool has_deprecated() const override { return values_.has_deprecated(); }
  Result<FieldValue> field(ValueNode node, std::size_t table, std::size_t field) override {
    ETSTREAM_ASSIGN(FieldValue value, values_.field(node, table, field));
    const auto newer = std::find_if(newer_.begin(), newer_.end(), [&](const BoundField& one) {
      return one.table == table && one.index == field;
    });
    if (newer == newer_.end()) return value;
    const auto* scalar = std::get_if<ScalarValue>(&value);
    if (std::holds_alternative<AbsentValue>(value) || (scalar && scalar->bits == 0)) return value;
    return make_error(ErrorCode::kInvalidArgument,
                      "the program has a value for {}, which ExecuTorch {} does not know", newer->full_name(),
                      name_of(release_));
  }
  Result<FieldValue> element(ValueNode vector, std::uint64_t i) override {
    return values_.element(vector, i);
  }

 private:
  ValueReader& values_;
  const ExecutorchRelease release_;
  std::vector<BoundField> newer_;
};

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
      // ExecuTorch aligns segments relative to the first one, which it aligns to less.
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

  /// Aligns what is in segments in the file as it would be aligned in the flatbuffer.
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

  /// Keeps the segments in their places, if all of them are as they were, in order and apart. Returns whether
  /// they are.
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
    const bool has_header =
        std::ranges::any_of(segments_, [](const Segment& segment) { return segment.source.size() > 0; });
    ETSTREAM_ASSIGN(const TableView root, editable_.program.view().root());
    EditedValues values(editable_.program.view(), root);
    ETSTREAM_TRY(set_values(editable_, offsets_, values));
    ReleaseFields known(editable_.program.fields(), values, style_.writer.release);
    auto packed = pack_program(editable_.program, known, style_, has_header);
    if (!packed && packed.error().code == ErrorCode::kTooLarge) {
      packed.error().advice = {AdviceTerm::kDelegatesInSegments};
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

/// Returns `style` with what the options ask for in its place.
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

}  // namespace

Result<void> check(const ProgramPlanOptions& options) {
  const auto check_one = [](std::string_view what, std::optional<std::uint32_t> alignment,
                            std::uint32_t most) {
    return check_alignment(what, alignment.value_or(1), most);
  };
  ETSTREAM_TRY(check_one("segment alignment", options.segment_alignment, kMostSegmentAlignment));
  ETSTREAM_TRY(
      check_one("constant tensor alignment", options.constant_tensor_alignment, kMostInlineAlignment));
  return check_one("delegate alignment", options.delegate_alignment, kMostInlineAlignment);
}

Result<FilePlan> lay_out(EditableProgram editable, const ProgramStyle& observed,
                         const ProgramPlanOptions& options) {
  return ProgramPlanner(std::move(editable), with_options(observed, options)).run(options);
}

Result<FilePlan> pack_program(const pte::Program& program, ValueReader& values, const ProgramStyle& style,
                              bool has_header) {
  Schema schema = program.view().schema();
  const BoundField& data = program.fields().backend_delegate_inline_data.data;
  ETSTREAM_TRY(schema.set_alignment(data.table_name(), data.name(), style.delegates));
  PackerOptions options;
  options.header_size = has_header ? style.header : 0;
  // Until 1.1 programs went through JSON and flatc.
  if (style.writer.release <= ExecutorchRelease::k1_1) options.order = ObjectOrder::kFlatc;
  options.vtables = style.writer.vtables;
  return pack(schema, values, options);
}

void put_header(FilePlan& flatbuffer, const ExtendedHeader& header, const ProgramStyle& style) {
  std::vector<std::byte> bytes(style.header);
  write_extended_header(header, bytes);
  fill_header(flatbuffer, std::move(bytes));
}

Result<FilePlan> plan(const ProgramFile& program, const ProgramPlanOptions& options) {
  ETSTREAM_ASSIGN(ProgramPlan planned, plan(program, ProgramChanges(), options));
  return std::move(planned.program);
}

}  // namespace etstream
