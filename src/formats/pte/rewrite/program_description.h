// SPDX-License-Identifier: BSD-3-Clause
//
// A program's description, made from values of any kind. The tables are packed without their data, which is
// set aside.
#pragma once

#include <string>

#include "etstream/program.h"
#include "etstream/program_plan.h"
#include "etstream/result.h"
#include "flatbuffer/schema.h"
#include "flatbuffer/schema_packer.h"

namespace etstream {

/// Returns the schema of described programs, whose segments have their data with them, and may have an
/// alignment.
[[nodiscard]] Result<Schema> with_segment_data(Schema schema);

/// Reads a description from `values` of such a schema. Segments without data get that of `segments_from`, by
/// their index, unless it is null. `name` is what messages call the values. Errors: those of pack();
/// kInvalidArgument for a segment without data, or with data of another size than it says.
[[nodiscard]] Result<ProgramDescription> describe_program(const Schema& schema, ValueReader& values,
                                                          const ProgramFile* segments_from,
                                                          const std::string& name);

}  // namespace etstream
