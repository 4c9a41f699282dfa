// SPDX-License-Identifier: BSD-3-Clause
//
// Constants of a program that are in a file of their own, moved there or back.
#pragma once

#include <vector>

#include "etstream/program_changes.h"
#include "etstream/result.h"
#include "etstream/tensor_data.h"
#include "pte/rewrite/editable_program.h"

namespace etstream {

/// Takes all constants and named data out of the program. Errors: kInvalidArgument for a key that two would
/// have, and where there are none; kCorrupt for a constant that is not inside its segment; those of reading.
[[nodiscard]] Result<TensorData> move_constants_out(EditableProgram& editable, const ConstantsOut& options);

/// Takes external tensors, and all data without a layout, in from these files. A tensor keeps its name,
/// unless that is the SHA-256 of its data. Errors: kInvalidArgument for data that comes from two of the
/// files, or that has another layout than the tensor; kCorrupt, kIo.
[[nodiscard]] Result<void> move_constants_in(EditableProgram& editable,
                                             const std::vector<const TensorDataFile*>& files);

}  // namespace etstream
