// SPDX-License-Identifier: BSD-3-Clause
//
// What a program's segments are used for.
#pragma once

#include <vector>

#include "etstream/program.h"
#include "etstream/result.h"
#include "pte/program_model.h"

namespace etstream {

/// Sets `use` of each of `segments`, which are those of `program`. A segment of several uses gets the first.
/// Errors: those of FlatbufferView.
[[nodiscard]] Result<void> note_uses(const pte::Program& program, std::vector<SegmentInfo>& segments);

}  // namespace etstream
