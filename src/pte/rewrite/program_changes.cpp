// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/program_changes.h"

#include "base/try.h"
#include "pte/rewrite/dropped_methods.h"
#include "pte/rewrite/external_constants.h"
#include "pte/rewrite/program_draft.h"
#include "pte/rewrite/program_planner.h"

namespace etstream {
Result<ProgramPlan> plan(const ProgramFile& program, const ProgramChanges& changes,
                         const ProgramLayoutOptions& options) {
  return without_exceptions([&]() -> Result<ProgramPlan> {
    ProgramPlan out;
    if (changes.empty()) {
      ETSTREAM_ASSIGN(out.program, plan(program, options));
      return out;
    }
    if (changes.constants_out && !changes.constants_in.empty()) {
      return Error{ErrorCode::kInvalidArgument, "constants can't be moved out and in at once"};
    }
    ETSTREAM_TRY(check(options));
    ETSTREAM_ASSIGN(ProgramDraft draft, read_draft(program));
    ETSTREAM_ASSIGN(const ProgramStyle observed, observe_style(draft));
    draft.has_stack_traces = !changes.drop_stack_traces;
    if (!changes.drop_methods.empty()) ETSTREAM_TRY(drop_methods(draft, changes.drop_methods));
    ETSTREAM_TRY(move_constants_in(draft, changes.constants_in));
    if (changes.constants_out) {
      ETSTREAM_ASSIGN(out.weights, move_constants_out(draft, *changes.constants_out));
      out.weights->segment_alignment =
          default_segment_alignment(options.as_of.value_or(observed.writer.release));
    }
    ETSTREAM_ASSIGN(out.program, lay_out(std::move(draft), observed, options));
    return out;
  });
}

}  // namespace etstream
