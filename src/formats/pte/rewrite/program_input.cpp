// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/program_input.h"

#include <utility>

#include "core/base/findings.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/file_kind.h"
#include "etstream/program.h"
#include "etstream/program_description.h"

namespace etstream {
namespace {

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

Result<ProgramPlan> plan_program_input(const ByteSource& file, const ProgramInputOptions& input,
                                       const ProgramChanges& changes, const ProgramPlanOptions& options) {
  return without_exceptions([&] { return plan_input(file, input, changes, options); });
}

}  // namespace etstream
