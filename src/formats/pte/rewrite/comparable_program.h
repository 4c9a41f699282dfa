// SPDX-License-Identifier: BSD-3-Clause
//
// A program as one layout has it, so that two programs of the same content are the same bytes.
#pragma once

#include "etstream/file_plan.h"
#include "etstream/program.h"
#include "etstream/result.h"

namespace etstream {

/// The parts to compare: all, or all but the named data, so that the flatbuffer of two programs is the same
/// where they differ in what lies in segments alone.
enum class ComparedParts { kAll, kTables };

/// Returns the plan of `program` with one alignment for all, delegates in segments and named data by its
/// keys: whoever asks for named data asks by key, so that its order means nothing. The plan is not of a file
/// that anyone would write. Errors: those of plan().
[[nodiscard]] Result<FilePlan> plan_comparable(const ProgramFile& program, ComparedParts parts);

}  // namespace etstream
