// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/program_description.h"

#include "core/base/text.h"
#include "core/base/try.h"
#include "core/layout/append.h"
#include "etstream/program_changes.h"
#include "flatbuffer/json/json_value_reader.h"
#include "formats/pte/rewrite/constant_segment.h"
#include "formats/pte/rewrite/editable_program.h"
#include "formats/pte/rewrite/payload_extraction.h"
#include "formats/pte/rewrite/program_plan.h"
#include "formats/segments/file_kind.h"

namespace etstream {
namespace {

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
  ETSTREAM_ASSIGN(const auto values, JsonValueReader::parse(schema, json, options.folder));
  ETSTREAM_ASSIGN(auto out, describe_program(schema, *values, options.segments_from, json.name()));
  out.name = json.name();
  out.schema = options.schema;
  return out;
}

}  // namespace

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

}  // namespace etstream
