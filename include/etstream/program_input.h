// SPDX-License-Identifier: BSD-3-Clause
//
// Plans a program from another one, or from JSON that describes it, as `etstream pte` does.
//
//   const auto file = etstream::ByteSource::file("model.json");
//   if (!file) return file.error();
//   const auto planned = etstream::plan_program_input(*file, {}, {}, {});
//   if (!planned) return planned.error();
#pragma once

#include <optional>
#include <string>

#include "etstream/byte_source.h"
#include "etstream/export.h"
#include "etstream/findings.h"
#include "etstream/program_changes.h"
#include "etstream/program_schema.h"
#include "etstream/result.h"

namespace etstream {

/// Options for a program that may be given as JSON.
struct ProgramInputOptions {
  std::string folder;  // that paths in JSON are relative to
  ProgramSchema schema;
  std::optional<ByteSource> segments_from;  // a program, for JSON; see ProgramJsonOptions
  /// The sharing of vtables in a program that JSON describes, unless its options say otherwise.
  VtableSharing described_vtables = VtableSharing::kOfEqualSize;
  Warn warn = {};  // of what ProgramFile::verify() warns of
};

/// Plans the program in `file`, or the one that it describes in JSON, with these changes. Verifies it: before
/// planning a program, or after all changes to a described one. Moves constants from the flatbuffer into a
/// segment, where ExecuTorch 1.3 and later need them, unless options.as_of is an earlier release. Errors:
/// those of require_sound(), ProgramFile::open(), read_program_json() and plan(ProgramFile); kInvalidArgument
/// if `segments_from` is given for a program that is no JSON.
[[nodiscard]] ETSTREAM_EXPORT Result<ProgramPlan> plan_program_input(const ByteSource& file,
                                                                     const ProgramInputOptions& input,
                                                                     const ProgramChanges& changes,
                                                                     const ProgramPlanOptions& options);

}  // namespace etstream
