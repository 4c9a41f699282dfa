// SPDX-License-Identifier: BSD-3-Clause
//
// Alignments that a program was exported with and that do not hold in it. ExecuTorch 1.5.1 aligns constant
// tensors within their segment alone, which lies where segments do, and does not align delegates in segments.
#pragma once

#include "etstream/findings.h"
#include "etstream/result.h"
#include "pte/program_model.h"

namespace etstream {

/// Adds a warning to `findings` for each. What was asked for shows in the extended header's padding, and
/// which of the two it was for in where tensors lie; where that is not certain nothing is said. Errors: those
/// of reading.
[[nodiscard]] Result<void> warn_of_lost_alignment(const pte::Program& program, Findings& findings);

}  // namespace etstream
