// SPDX-License-Identifier: BSD-3-Clause
//
// A program in one fixed layout, so that two programs of the same content have the same bytes.
#pragma once

#include "etstream/file_plan.h"
#include "etstream/program.h"
#include "etstream/result.h"

namespace etstream {

/// The parts to compare: all, or all except the named data. Without it, two programs have the same flatbuffer
/// if they differ only in segments.
enum class ComparedParts { kAll, kTables };

/// Returns the plan of `program` with one alignment for all, delegates in segments and named data by its
/// keys. The order of named data has no meaning, as it is only asked for by key. The plan is not of a file
/// that anyone would write. Errors: those of plan().
[[nodiscard]] Result<FilePlan> plan_comparable(const ProgramFile& program, ComparedParts parts);

}  // namespace etstream
