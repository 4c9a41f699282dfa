// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/program_plan.h"

#include "base/try.h"
#include "etstream/program_changes.h"

namespace etstream {

Result<FilePlan> plan(const ProgramFile& program, const ProgramPlanOptions& options) {
  ETSTREAM_ASSIGN(ProgramPlan planned, plan(program, ProgramChanges(), options));
  return std::move(planned.program);
}

}  // namespace etstream
