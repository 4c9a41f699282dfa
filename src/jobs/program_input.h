// SPDX-License-Identifier: BSD-3-Clause
//
// What pte makes a program from: another one, or a description in JSON.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "etstream/byte_source.h"
#include "etstream/findings.h"
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

/// Fails where the findings have errors.
using RequireSound = std::function<Result<void>(const Findings&)>;

/// The plan of the program in `file`, or of the one that it describes in JSON, with these changes. Calls
/// `require_sound` once, before the program that is read is planned, or with what a described one is when all
/// changes are made.
[[nodiscard]] Result<ProgramPlan> plan_program_input(const ByteSource& file, const ProgramInputOptions& input,
                                                     const ProgramChanges& changes,
                                                     const ProgramPlanOptions& options,
                                                     const RequireSound& require_sound);

}  // namespace etstream
