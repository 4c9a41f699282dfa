// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/program_description.h"

#include "base/text.h"
#include "base/try.h"
#include "layout/alignment.h"
#include "pte/rewrite/constant_segment.h"
#include "pte/rewrite/editable_program.h"
#include "pte/rewrite/program_planner.h"

namespace etstream {
namespace {

Result<void> check_count(std::string_view what, std::size_t given, std::size_t in_metadata) {
  if (given == in_metadata) return {};
  return make_error(ErrorCode::kInvalidArgument, "program: expected {} of {} as in its metadata, found {}",
                    in_metadata, what, given);
}

Result<std::vector<SegmentSource>> sources_of(const std::vector<ProgramDescription::Segment>& segments) {
  std::vector<SegmentSource> sources;
  for (const ProgramDescription::Segment& segment : segments) {
    const std::string what = text("program: segment {}: alignment", sources.size());
    ETSTREAM_TRY(check_alignment(what, segment.alignment, kMostSegmentAlignment));
    sources.push_back({segment.data, segment.alignment, std::nullopt});
  }
  return sources;
}

/// The data that is not in the metadata.
void set_data(std::vector<EditableProgram::InlineData>& entries, const std::vector<ByteSource>& data) {
  for (std::size_t i = 0; i < entries.size(); ++i) entries[i].data = data[i];
}

}  // namespace

Result<FilePlan> plan(const ProgramDescription& program, const ProgramPlanOptions& options) {
  return without_exceptions([&]() -> Result<FilePlan> {
    ETSTREAM_TRY(check(options));
    ETSTREAM_ASSIGN(auto schema, program.schema.schema());
    ExtendedHeader none;
    none.program_size = program.metadata.size();
    ETSTREAM_ASSIGN(const auto model,
                    pte::Program::open(std::move(schema), program.metadata, none, "program"));
    ETSTREAM_ASSIGN(const auto segments, model->segment_tables());
    ETSTREAM_TRY(check_count(model->fields().root.segments.name(), program.segments.size(), segments.size()));
    ETSTREAM_ASSIGN(const auto sources, sources_of(program.segments));
    ETSTREAM_ASSIGN(EditableProgram editable, read_editable_program(*model, sources));
    ETSTREAM_TRY(check_count("constants", program.constants.size(), editable.inline_constants.size()));
    set_data(editable.inline_constants, program.constants);
    ETSTREAM_TRY(
        check_count("data of delegates", program.delegate_data.size(), editable.inline_delegates.size()));
    set_data(editable.inline_delegates, program.delegate_data);
    editable.has_same_inline_delegates = false;
    if (!editable.inline_constants.empty()) ETSTREAM_TRY(split_constants(editable));
    ProgramPlanOptions wanted = options;
    if (!wanted.delegates) wanted.delegates = DelegateData::kInSegments;
    return lay_out(std::move(editable), {}, wanted);
  });
}

}  // namespace etstream
