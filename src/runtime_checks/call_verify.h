// SPDX-License-Identifier: BSD-3-Clause
//
// A check that the delegates of a method can be loaded, and that calls give operators and delegates what they
// take.
#pragma once

#include "etstream/findings.h"
#include "etstream/result.h"
#include "formats/pte/backends/backend_payload.h"
#include "formats/pte/program_model.h"

namespace etstream {

/// Adds to `findings` the parts that ExecuTorch 1.5.1 would refuse or that would end the process: arguments
/// of another kind than an operator's schema has, lists with items of another kind, tensors without memory,
/// names that are no text. The kinds of values are followed through the instructions. Unknown operators are
/// counted and named. All indices of `method` are in range. `named_data` is the program's own. Memory: 17
/// bytes a value, 56 an operator, 20 an instruction, 8 a delegate, and that of the largest graph of
/// XNNPACK's. Time: in proportion to the file's size. Errors: as of Program.
[[nodiscard]] Result<void> verify_method_calls(const pte::Program& program, const pte::Method& method,
                                               const NamedDataSizes& named_data, Findings& findings);

}  // namespace etstream
