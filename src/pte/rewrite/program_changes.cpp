// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/program_changes.h"

#include <string_view>

#include "base/text.h"
#include "base/try.h"
#include "flatbuffer/json_reader.h"
#include "pte/rewrite/dropped_methods.h"
#include "pte/rewrite/editable_program.h"
#include "pte/rewrite/external_data.h"
#include "pte/rewrite/named_data.h"
#include "pte/rewrite/program_plan.h"

namespace etstream {

Result<std::map<std::string, std::string>> read_constant_keys(const ByteSource& json) {
  constexpr std::uint64_t kMost = std::uint64_t{64} << 20;
  if (json.size() > kMost) {
    return make_error(ErrorCode::kTooLarge, "{}: expected at most {} bytes, found {}", json.name(), kMost,
                      json.size());
  }
  std::map<std::string, std::string> out;
  ETSTREAM_TRY(read_json(json, ErrorCode::kInvalidArgument, [&](JsonReader& reader) {
    return reader.members([&](std::string_view key) -> Result<void> {
      const JsonTape::Value value = reader.take();
      if (value.kind != JsonReader::Kind::kString) {
        return reader.error(text("{}: expected a string, found {}", quote(key), name_of(value.kind)));
      }
      out[std::string(key)] = value.string;
      return {};
    });
  }));
  return out;
}

namespace {

Result<void> check(const ProgramChanges& changes, const ProgramPlanOptions& options) {
  if (changes.constants_out && !changes.constants_in.empty()) {
    return Error{ErrorCode::kInvalidArgument, "constants can't be moved out and in at once"};
  }
  return check(options);
}

Result<ProgramPlan> plan_changed(EditableProgram editable, const ProgramStyle& observed,
                                 const ProgramChanges& changes, const ProgramPlanOptions& options) {
  ProgramPlan out;
  editable.has_stack_traces = !changes.drop_stack_traces;
  if (!changes.drop_methods.empty()) ETSTREAM_TRY(drop_methods(editable, changes.drop_methods));
  ETSTREAM_TRY(move_constants_in(editable, changes.constants_in));
  if (changes.constants_out) {
    ETSTREAM_ASSIGN(out.tensor_data, move_constants_out(editable, *changes.constants_out));
    out.tensor_data->segment_alignment =
        default_segment_alignment(options.as_of.value_or(observed.writer.release));
  }
  ETSTREAM_TRY(add_metadata(editable, changes.metadata));
  ETSTREAM_ASSIGN(out.program, lay_out(std::move(editable), observed, options));
  return out;
}

}  // namespace

Result<ProgramPlan> plan(const ProgramFile& program, const ProgramChanges& changes,
                         const ProgramPlanOptions& options) {
  return without_exceptions([&]() -> Result<ProgramPlan> {
    if (changes.empty() && options.empty()) return ProgramPlan{plan_copy(program.file(), "program"), {}};
    ETSTREAM_TRY(check(changes, options));
    ETSTREAM_ASSIGN(EditableProgram editable, read_editable_program(program));
    ETSTREAM_ASSIGN(const ProgramStyle observed, observe_style(editable));
    return plan_changed(std::move(editable), observed, changes, options);
  });
}

Result<ProgramPlan> plan(const ProgramDescription& program, const ProgramChanges& changes,
                         const ProgramPlanOptions& options) {
  return without_exceptions([&]() -> Result<ProgramPlan> {
    ETSTREAM_TRY(check(changes, options));
    ETSTREAM_ASSIGN(auto schema, program.schema.schema());
    ExtendedHeader none;
    none.program_size = program.metadata.size();
    ETSTREAM_ASSIGN(const auto model,
                    pte::Program::open(std::move(schema), program.metadata, none, program.name));
    ETSTREAM_ASSIGN(EditableProgram editable, read_editable_program(*model, program));
    ProgramPlanOptions wanted = options;
    if (!wanted.delegates) wanted.delegates = DelegateData::kInSegments;
    return plan_changed(std::move(editable), {}, changes, wanted);
  });
}

}  // namespace etstream
