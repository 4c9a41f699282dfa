// SPDX-License-Identifier: BSD-3-Clause
//
// Alignments that a program was exported with and that do not hold in it. ExecuTorch 1.5.1 aligns constant
// tensors within their segment alone, which lies where segments do, and does not align delegates in segments.
#pragma once

#include "etstream/findings.h"
#include "etstream/result.h"
#include "pte/program_model.h"

namespace etstream {

/// Adds a warning to `findings` for each. The extended header's padding shows which alignment was asked for,
/// and where tensors lie shows whether it was for them or for delegates. Where that is not certain there is
/// no warning. Errors: those of reading.
[[nodiscard]] Result<void> warn_of_unmet_alignment(const pte::Program& program, Findings& findings);

}  // namespace etstream
