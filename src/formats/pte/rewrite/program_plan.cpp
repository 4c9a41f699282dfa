// SPDX-License-Identifier: BSD-3-Clause
//
// The style that a program was written with, told from the places of its parts; then the plan of a file in a
// style; and the plan in one fixed layout.
#include "formats/pte/rewrite/program_plan.h"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/text.h"
#include "core/base/try.h"
#include "core/layout/file_plan.h"
#include "core/layout/same_bytes.h"
#include "etstream/program_plan.h"
#include "flatbuffer/edited_values.h"
#include "flatbuffer/schema_packer.h"
#include "formats/pte/program_model.h"
#include "formats/pte/rewrite/editable_program.h"

namespace etstream {
namespace {

/// The writers that lay the same content out differently. Each writer between them lays it out like one of
/// them.
constexpr std::array kWriters = {
    WriterVersion{kLatestRelease, VtableSharing::kOfEqualSize},
    WriterVersion{kLatestRelease, VtableSharing::kOfAnySize},
    WriterVersion{ExecutorchRelease::k1_1, VtableSharing::kOfEqualSize},
};

/// Returns the largest powers of two that data of delegates in the flatbuffer is aligned to, from either end
/// of it: all data, as Python's builder aligns it, and all that is not empty, as flatc does. A writer that
/// aligned it to less laid it out the same.
Result<std::array<std::uint32_t, 2>> shared_alignments(const pte::Program& program) {
  std::array<std::uint64_t, 2> places;
  places.fill(kMostInlineAlignment | program.view().file().size());
  ETSTREAM_TRY(for_each(program.inline_delegates(), [&](const pte::InlineDelegate& entry) -> Result<void> {
    ETSTREAM_ASSIGN(const auto data, entry.vector(program.fields().backend_delegate_inline_data.data));
    if (data) places[0] |= data->elements();
    if (data && data->count > 0) places[1] |= data->elements();
    return {};
  }));
  std::array<std::uint32_t, 2> out;
  std::ranges::transform(places, out.begin(), [](std::uint64_t all) {
    return static_cast<std::uint32_t>(std::uint64_t{1} << std::countr_zero(all));
  });
  return out;
}

/// Finds the writer with which packing gives the program's flatbuffer again. Returns whether one does.
Result<bool> find_writer(const pte::Program& program, ValueReader& values, ProgramStyle& style) {
  const bool has_header = program.header().length != 0;
  for (const WriterVersion& writer : kWriters) {
    style.writer = writer;
    ETSTREAM_ASSIGN(FilePlan flatbuffer, pack_program(program, values, style, has_header));
    if (has_header) put_header(flatbuffer, program.header(), style);
    ETSTREAM_ASSIGN(const bool same, gives_same_bytes(flatbuffer, program.view().file()));
    if (same) return true;
  }
  return false;
}

/// Finds the writer and the alignments of delegates and of the header with which packing gives the program's
/// flatbuffer again. Keeps the usual ones if no writer gives it, as another tool made it.
Result<void> observe_flatbuffer(const pte::Program& program, bool has_inline_delegates, ProgramStyle& out) {
  ETSTREAM_ASSIGN(const TableView root, program.view().root());
  EditedValues values(program.view(), root);
  ProgramStyle style = out;
  if (program.header().length != 0) {
    ETSTREAM_ASSIGN(const std::uint64_t header, program.header_alignment());
    style.header = static_cast<std::uint32_t>(header);
  }
  std::vector<std::uint32_t> alignments = {out.delegates};
  if (has_inline_delegates) {
    ETSTREAM_ASSIGN(const auto all_shared, shared_alignments(program));
    for (const std::uint32_t shared : all_shared) {
      // The header is padded to what delegates are aligned to, or to more.
      const std::uint32_t delegates = program.header().length != 0 ? std::min(shared, style.header) : shared;
      if (std::ranges::find(alignments, delegates) == alignments.end()) alignments.push_back(delegates);
    }
  }
  for (const std::uint32_t delegates : alignments) {
    style.delegates = delegates;
    ETSTREAM_ASSIGN(const bool is_found, find_writer(program, values, style));
    if (is_found) {
      out = style;
      break;
    }
  }
  return {};
}

/// Finds the alignment of constant tensors. They lie at multiples of it, and the header is padded to at least
/// that. With one tensor or none, the reason for the padding is unknown: then it is the delegates' if they
/// are aligned so.
void observe_tensors(const EditableProgram& editable, ProgramStyle& out) {
  std::uint64_t bits = 0;  // of all offsets
  if (editable.constants) {
    for (const std::uint64_t offset : editable.constants->offsets) bits |= offset;
  }
  if (bits == 0) {
    out.header_is_for_tensors = out.header != out.delegates && out.header > ExtendedHeader::kSize;
    if (out.header_is_for_tensors) out.tensors = out.header;
    return;
  }
  out.tensors = out.header;
  while (bits % out.tensors != 0) out.tensors /= 2;
  out.header_is_for_tensors = out.tensors == out.header;
}

/// Returns the alignment that explains the places of segments: the usual one if it does, otherwise the
/// largest one that does. The padding before the first segment is shorter than the alignment.
std::uint32_t observed_segment_alignment(const ExtendedHeader& header, std::span<const SegmentInfo> segments,
                                         std::uint32_t usual) {
  const std::uint64_t padding = header.segment_base_offset - header.program_size;
  std::uint64_t places = header.segment_base_offset;
  for (const SegmentInfo& segment : segments) places |= segment.size > 0 ? segment.offset : 0;
  const auto does_it = [&](std::uint32_t alignment) {
    return padding < alignment && places % alignment == 0;
  };
  if (places == 0 || does_it(usual)) return usual;
  for (std::uint32_t alignment = kMostSegmentAlignment; alignment > 0; alignment /= 2) {
    if (does_it(alignment)) return alignment;
  }
  return usual;
}

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

/// Sorts named data by its keys, and puts its segments behind all others in that order.
void sort_named_data(EditableProgram& editable) {
  std::ranges::stable_sort(editable.named_data, {}, &EditableProgram::NamedData::key);
  std::vector<std::uint32_t> sorted;
  std::set<std::uint32_t> seen;
  for (const EditableProgram::NamedData& named : editable.named_data) {
    if (editable.segments[named.segment].label == kNamedDataLabel && seen.insert(named.segment).second) {
      sorted.push_back(named.segment);
    }
  }
  std::erase_if(editable.order, [&](std::uint32_t segment) { return seen.contains(segment); });
  editable.order.insert(editable.order.end(), sorted.begin(), sorted.end());
  editable.has_same_named_data = false;
}

/// Removes all named data.
void remove_named_data(EditableProgram& editable) {
  std::set<std::string> keys;
  for (const EditableProgram::NamedData& named : editable.named_data) keys.insert(named.key);
  remove_named_data(editable, keys);
}

}  // namespace

Result<ProgramStyle> observe_style(const EditableProgram& editable) {
  ProgramStyle out;
  ETSTREAM_TRY(observe_flatbuffer(editable.program, !editable.inline_delegates.empty(), out));
  observe_tensors(editable, out);
  ETSTREAM_ASSIGN(const auto segments, editable.program.segments());
  out.segments = observed_segment_alignment(editable.program.header(), segments, out.segments);
  return out;
}

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

Result<FilePlan> plan_comparable(const ProgramFile& program, ComparedParts parts) {
  constexpr std::uint32_t kAlignment = 16;
  const ProgramPlanOptions options{.segment_alignment = kAlignment,
                                   .constant_tensor_alignment = kAlignment,
                                   .delegate_alignment = kAlignment,
                                   .delegates = DelegateData::kInSegments,
                                   .as_of = kLatestRelease,
                                   .vtables = VtableSharing::kOfEqualSize};
  ETSTREAM_ASSIGN(EditableProgram editable, read_editable_program(program));
  ETSTREAM_ASSIGN(const ProgramStyle observed, observe_style(editable));
  if (parts == ComparedParts::kAll) {
    sort_named_data(editable);
  } else {
    remove_named_data(editable);
  }
  return lay_out(std::move(editable), observed, options);
}

}  // namespace etstream
