// SPDX-License-Identifier: BSD-3-Clause
#include "formats/pte/rewrite/program_description.h"

#include <optional>
#include <utility>
#include <vector>

#include "core/base/findings.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/layout/file_plan.h"
#include "etstream/file_kind.h"
#include "etstream/program.h"
#include "etstream/program_plan.h"
#include "flatbuffer/json/json_value_reader.h"
#include "flatbuffer/schema_packer.h"
#include "formats/pte/rewrite/editable_program.h"
#include "formats/pte/rewrite/program_plan.h"
#include "formats/segments/file_kind.h"
#include "program_fields_generated.h"

namespace etstream {
namespace {

constexpr std::string_view kSegmentData = "data";
constexpr std::string_view kSegmentAlignment = "alignment";

/// The fields of a described segment. The last two are not in programs' schema.
struct DescribedSegmentFields : program::DataSegmentFields {
  using DataSegmentFields::DataSegmentFields;
  BoundField data = field(kSegmentData);
  BoundField alignment = field(kSegmentAlignment);
};

/// Passes on the values of another reader, but keeps data and reports it as absent. The packer asks for each
/// entry of a list once and in order, and for an entry's fields in their order.
class PayloadExtractor final : public ValueReader {
 public:
  PayloadExtractor(const Schema& schema, ValueReader& values, ProgramDescription& out)
      : values_(values), out_(out), constant_(schema), delegate_(schema), segment_(schema) {}

  ValueNode root() override { return values_.root(); }
  bool has_deprecated() const override { return values_.has_deprecated(); }
  Result<FieldValue> field(ValueNode node, std::size_t table, std::size_t field) override {
    ETSTREAM_ASSIGN(FieldValue value, values_.field(node, table, field));
    const auto asks_for = [&](const BoundField& known) {
      return known.table == table && known.index == field;
    };
    if (asks_for(constant_.storage)) {
      out_.constants.push_back(bytes_of(value));
    } else if (asks_for(delegate_.data)) {
      out_.delegate_data.push_back(bytes_of(value));
    } else if (asks_for(segment_.size)) {
      sizes_.push_back(number_of(value));
    } else if (asks_for(segment_.data)) {
      out_.segments.push_back({bytes_of(value)});
      has_data_.push_back(!std::holds_alternative<AbsentValue>(value));
    } else if (asks_for(segment_.alignment)) {
      out_.segments.back().alignment = static_cast<std::uint32_t>(number_of(value).value_or(1));
    } else {
      return value;
    }
    return FieldValue(AbsentValue{});
  }
  Result<FieldValue> element(ValueNode vector, std::uint64_t i) override {
    return values_.element(vector, i);
  }

  /// Takes the data of segments that have none from `program`, unless it is null, and checks all sizes.
  Result<void> complete_segments(const ProgramFile* program, const std::string& name) {
    std::vector<SegmentInfo> found;
    if (program) {
      ETSTREAM_ASSIGN(found, program->segments());
    }
    for (std::size_t i = 0; i < out_.segments.size(); ++i) {
      ByteSource& data = out_.segments[i].data;
      if (!has_data_[i] && i < found.size()) {
        ETSTREAM_ASSIGN(data, program->file().slice(found[i].offset, found[i].size));
      }
      if (sizes_[i].value_or(data.size()) == data.size()) continue;
      Error error = error_in(ErrorCode::kInvalidArgument, name,
                             "segments[{}]: expected data of {} bytes as its size says, found {}{}", i,
                             *sizes_[i], data.size(), has_data_[i] ? "" : ": the JSON has none");
      if (has_data_[i]) return error;
      return with_advice(std::move(error), {"take it from the program (", AdviceTerm::kSegmentsFrom, ")"});
    }
    return {};
  }

 private:
  static ByteSource bytes_of(const FieldValue& value) {
    if (const auto* source = std::get_if<ByteSource>(&value)) return *source;
    const auto* bytes = std::get_if<BytesValue>(&value);
    return bytes ? ByteSource::owned({bytes->begin(), bytes->end()}) : ByteSource();
  }

  static std::optional<std::uint64_t> number_of(const FieldValue& value) {
    const auto* scalar = std::get_if<ScalarValue>(&value);
    return scalar ? std::optional(scalar->bits) : std::nullopt;
  }

  ValueReader& values_;
  ProgramDescription& out_;
  const program::BufferFields constant_;
  const program::BackendDelegateInlineDataFields delegate_;
  const DescribedSegmentFields segment_;
  std::vector<std::optional<std::uint64_t>> sizes_;  // of segments, as they say
  std::vector<bool> has_data_;                       // of segments
};

Result<void> check_count(const ProgramDescription& program, std::string_view what, std::size_t given,
                         std::size_t in_metadata) {
  if (given == in_metadata) return {};
  return error_in(ErrorCode::kInvalidArgument, program.name, "expected {} of {} as in its metadata, found {}",
                  in_metadata, what, given);
}

Result<std::vector<EditableProgram::Segment>> segments_of(const ProgramDescription& program) {
  std::vector<EditableProgram::Segment> out;
  for (const ProgramDescription::Segment& segment : program.segments) {
    const std::string what = text("{}: segment {}: alignment", program.name, out.size());
    ETSTREAM_TRY(check_alignment(what, segment.alignment, kMostSegmentAlignment));
    out.push_back({.source = segment.data, .alignment = segment.alignment});
  }
  return out;
}

/// Sets the data that is not in the metadata.
void set_data(EditableProgram& editable, std::vector<EditableProgram::InlineData>& entries,
              const std::vector<ByteSource>& data) {
  for (std::size_t i = 0; i < entries.size(); ++i) {
    editable.size += data[i].size();
    entries[i].data = data[i];
  }
}

Result<ProgramDescription> read_description(const ByteSource& json, const ProgramJsonOptions& options) {
  ETSTREAM_ASSIGN(const auto plain, options.schema.schema());
  ETSTREAM_ASSIGN(const Schema schema, with_segment_data(*plain));
  ETSTREAM_ASSIGN(const auto values, read_json_values(schema, json, options.folder));
  ETSTREAM_ASSIGN(auto out, describe_program(schema, *values, options.segments_from, json.name()));
  out.name = json.name();
  out.schema = options.schema;
  return out;
}

Result<ProgramDescription> read_description(const ByteSource& json, const ProgramInputOptions& input) {
  ProgramJsonOptions options;
  options.folder = input.folder;
  options.schema = input.schema;
  std::optional<ProgramFile> segments_from;
  if (input.segments_from) {
    ETSTREAM_ASSIGN(segments_from, ProgramFile::open(*input.segments_from, {}, input.schema));
    options.segments_from = &*segments_from;
  }
  return read_program_json(json, options);
}

Result<ProgramPlan> plan_input(const ByteSource& file, const ProgramInputOptions& input,
                               const ProgramChanges& changes, const ProgramPlanOptions& options) {
  ProgramPlanOptions wanted = options;
  wanted.extract_constants = options.as_of.value_or(kLatestRelease) >= ExecutorchRelease::k1_3;
  ETSTREAM_ASSIGN(const bool is_described, begins_json_object(file));
  if (!is_described) {
    if (input.segments_from) {
      return error_in(ErrorCode::kInvalidArgument, file.name(),
                      "is a program, which has its segments; only JSON takes those of another");
    }
    ETSTREAM_ASSIGN(const ProgramFile program, ProgramFile::open(file, {}, input.schema));
    ETSTREAM_TRY(require_sound(program, input.warn));
    return plan(program, changes, wanted);
  }
  ETSTREAM_ASSIGN(const ProgramDescription described, read_description(file, input));
  if (!wanted.vtables) wanted.vtables = input.described_vtables;
  ETSTREAM_ASSIGN(ProgramPlan planned, plan(described, changes, wanted));
  ETSTREAM_ASSIGN(ByteSource bytes, source_of(planned.program));
  ETSTREAM_ASSIGN(const auto program, ProgramFile::open(std::move(bytes), file.name(), input.schema));
  auto sound = require_sound(program, input.warn);
  if (sound) return planned;
  // The program is in no file, which could be verified by itself.
  sound.error().advice.clear();
  return std::move(sound).error();
}

}  // namespace

Result<Schema> with_segment_data(Schema schema) {
  FieldType data;
  data.name = kSegmentData;
  data.kind = FieldKind::kInlineVector;
  data.width = 1;
  FieldType alignment;
  alignment.name = kSegmentAlignment;
  alignment.width = alignment.natural_alignment = sizeof(std::uint32_t);
  ETSTREAM_TRY(schema.add_field(program::DataSegmentFields::kName, std::move(data)));
  ETSTREAM_TRY(schema.add_field(program::DataSegmentFields::kName, std::move(alignment)));
  return schema;
}

Result<ProgramDescription> describe_program(const Schema& schema, ValueReader& values,
                                            const ProgramFile* segments_from, const std::string& name) {
  ProgramDescription out;
  PayloadExtractor extractor(schema, values, out);
  ETSTREAM_ASSIGN(const FilePlan plan, pack(schema, extractor));
  ETSTREAM_TRY(extractor.complete_segments(segments_from, name));
  ETSTREAM_ASSIGN(out.metadata, source_of(plan));
  return out;
}

Result<EditableProgram> read_editable_program(const pte::Program& model, const ProgramDescription& program) {
  ETSTREAM_ASSIGN(const auto tables, model.segment_tables());
  ETSTREAM_TRY(
      check_count(program, model.fields().program.segments.name(), program.segments.size(), tables.size()));
  ETSTREAM_ASSIGN(auto segments, segments_of(program));
  ETSTREAM_ASSIGN(EditableProgram editable, read_editable_program(model, std::move(segments)));
  editable.size = program.metadata.size();
  for (const auto& segment : editable.segments) editable.size += segment.source.size();
  ETSTREAM_TRY(check_count(program, "constants", program.constants.size(), editable.inline_constants.size()));
  set_data(editable, editable.inline_constants, program.constants);
  ETSTREAM_TRY(check_count(program, "data of delegates", program.delegate_data.size(),
                           editable.inline_delegates.size()));
  set_data(editable, editable.inline_delegates, program.delegate_data);
  editable.has_same_inline_delegates = false;
  if (!editable.inline_constants.empty()) ETSTREAM_TRY(split_constants(editable));
  return editable;
}

Result<ProgramDescription> read_program_json(const ByteSource& json, const ProgramJsonOptions& options) {
  return without_exceptions([&] {
    return unless_other(json, {"a program, or its description in JSON", {}, JsonContent::kProgram},
                        read_description(json, options));
  });
}

Result<FilePlan> plan(const ProgramDescription& program, const ProgramPlanOptions& options) {
  ETSTREAM_ASSIGN(ProgramPlan planned, plan(program, ProgramChanges(), options));
  return std::move(planned.program);
}

Result<ProgramPlan> plan_program_input(const ByteSource& file, const ProgramInputOptions& input,
                                       const ProgramChanges& changes, const ProgramPlanOptions& options) {
  return without_exceptions([&] { return plan_input(file, input, changes, options); });
}

}  // namespace etstream
