// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/program_layout.h"

#include "base/try.h"
#include "pte/rewrite/program_draft.h"
#include "pte/rewrite/program_planner.h"

namespace etstream {

Result<Layout> plan(const ProgramFile& program, const ProgramLayoutOptions& options) {
  return without_exceptions([&]() -> Result<Layout> {
    ETSTREAM_TRY(check(options));
    if (options.empty()) return plan_copy(program.file(), "program");
    ETSTREAM_ASSIGN(ProgramDraft draft, read_draft(program));
    ETSTREAM_ASSIGN(const ProgramStyle observed, observe_style(draft));
    return lay_out(std::move(draft), observed, options);
  });
}

}  // namespace etstream
