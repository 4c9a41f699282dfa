// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/program_description.h"

#include "base/checked.h"
#include "base/text.h"
#include "base/try.h"
#include "pte/rewrite/constant_segment.h"
#include "pte/rewrite/program_draft.h"
#include "pte/rewrite/program_planner.h"

namespace etstream {
namespace {

Result<void> check_count(std::string_view what, std::size_t given, std::size_t in_metadata) {
  if (given == in_metadata) return {};
  return make_error(ErrorCode::kInvalidArgument, "program: expected ", in_metadata, " of ", what,
                    " as in its metadata, found ", given);
}

Result<std::vector<DraftSource>> sources_of(const std::vector<ProgramDescription::Segment>& segments) {
  std::vector<DraftSource> sources;
  for (const ProgramDescription::Segment& segment : segments) {
    if (!is_power_of_two(segment.alignment) || segment.alignment > kMostSegmentAlignment) {
      return make_error(ErrorCode::kInvalidArgument, "program: segment ", sources.size(), ": alignment ",
                        segment.alignment, ": expected a power of two from 1 to ", kMostSegmentAlignment);
    }
    sources.push_back({segment.data, segment.alignment, std::nullopt});
  }
  return sources;
}

/// The data that is not in the metadata.
void set_data(std::vector<ProgramDraft::InlineData>& entries, const std::vector<ByteSource>& data) {
  for (std::size_t i = 0; i < entries.size(); ++i) entries[i].data = data[i];
}

}  // namespace

Result<Layout> plan(const ProgramDescription& program, const ProgramLayoutOptions& options) {
  return without_exceptions([&]() -> Result<Layout> {
    ETSTREAM_TRY(check(options));
    ETSTREAM_ASSIGN(auto schema, program.schema.schema());
    ExtendedHeader none;
    none.program_size = program.metadata.size();
    ETSTREAM_ASSIGN(const auto model,
                    pte::Program::open(std::move(schema), program.metadata, none, "program"));
    ETSTREAM_ASSIGN(const auto segments, model->segment_tables());
    ETSTREAM_TRY(check_count(model->fields().root.segments.name(), program.segments.size(), segments.size()));
    ETSTREAM_ASSIGN(const auto sources, sources_of(program.segments));
    ETSTREAM_ASSIGN(ProgramDraft draft, read_draft(*model, sources));
    ETSTREAM_TRY(check_count("constants", program.constants.size(), draft.inline_constants.size()));
    set_data(draft.inline_constants, program.constants);
    ETSTREAM_TRY(
        check_count("data of delegates", program.delegate_data.size(), draft.inline_delegates.size()));
    set_data(draft.inline_delegates, program.delegate_data);
    draft.has_same_inline_delegates = false;
    if (!draft.inline_constants.empty()) ETSTREAM_TRY(split_constants(draft));
    ProgramLayoutOptions wanted = options;
    if (!wanted.delegates) wanted.delegates = DelegateData::kInSegments;
    return lay_out(std::move(draft), {}, wanted);
  });
}

}  // namespace etstream
