// SPDX-License-Identifier: BSD-3-Clause
//
// What pte makes a program from: another one, or a description in JSON.
#pragma once

#include <optional>
#include <string>

#include "etstream/byte_source.h"
#include "etstream/program_changes.h"
#include "etstream/program_schema.h"
#include "etstream/result.h"
#include "etstream/writer_version.h"

namespace etstream {

struct ProgramInputOptions {
  std::string folder;  // that paths in JSON are relative to
  ProgramSchema schema;
  std::optional<ByteSource> segments_from;  // a program, for JSON; see ProgramJsonOptions
  /// How vtables are shared in a program that JSON describes, unless its options say so.
  VtableSharing described_vtables = VtableSharing::kOfEqualSize;
};

struct ProgramInput {
  ProgramFile program;
  std::optional<FilePlan> plan;     // of one that is described, and so only planned
  ProgramPlanOptions plan_options;  // that it is, or was, laid out with
};

/// Opens a program, or plans the one that a JSON file describes, which is a program before it is written.
[[nodiscard]] Result<ProgramInput> open_program_input(const ByteSource& file,
                                                      const ProgramInputOptions& options,
                                                      const ProgramPlanOptions& plan_options);

/// The plan of the program with these changes.
[[nodiscard]] Result<ProgramPlan> plan(ProgramInput input, const ProgramChanges& changes);

}  // namespace etstream
