// SPDX-License-Identifier: BSD-3-Clause
#include "jobs/program_input.h"

#include <utility>

#include "base/text.h"
#include "base/try.h"
#include "container/json_object.h"
#include "etstream/program_description.h"

namespace etstream {
namespace {

Result<ProgramInput> open_json(const ByteSource& json, const ProgramInputOptions& input,
                               ProgramPlanOptions plan_options) {
  ProgramJsonOptions options;
  options.folder = input.folder;
  options.schema = input.schema;
  std::optional<ProgramFile> segments_from;
  if (input.segments_from) {
    ETSTREAM_ASSIGN(segments_from, ProgramFile::open(*input.segments_from, {}, input.schema));
    options.segments_from = &*segments_from;
  }
  ETSTREAM_ASSIGN(const ProgramDescription described, read_program_json(json, options));
  if (!plan_options.vtables) plan_options.vtables = input.described_vtables;
  ETSTREAM_ASSIGN(FilePlan plan, plan(described, plan_options));
  ETSTREAM_ASSIGN(ByteSource planned, source_of(plan));
  ETSTREAM_ASSIGN(ProgramFile program, ProgramFile::open(std::move(planned), json.name(), input.schema));
  return ProgramInput{std::move(program), std::move(plan), plan_options};
}

}  // namespace

Result<ProgramInput> open_program_input(const ByteSource& file, const ProgramInputOptions& options,
                                        const ProgramPlanOptions& plan_options) {
  ETSTREAM_ASSIGN(const bool is_described, begins_json_object(file));
  if (is_described) return open_json(file, options, plan_options);
  if (options.segments_from) {
    return make_error(ErrorCode::kInvalidArgument,
                      "{}: is a program, which has its segments; only JSON takes those of another",
                      file.name());
  }
  ETSTREAM_ASSIGN(ProgramFile program, ProgramFile::open(file, {}, options.schema));
  return ProgramInput{std::move(program), std::nullopt, plan_options};
}

Result<ProgramPlan> plan(ProgramInput input, const ProgramChanges& changes) {
  if (input.plan && changes.empty()) return ProgramPlan{std::move(*input.plan), std::nullopt};
  if (input.plan) return plan(input.program, changes, {}, input.plan_options);
  return plan(input.program, changes, input.plan_options);
}

}  // namespace etstream
