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
  /// Of one that JSON describes, where its layout's options say nothing.
  VtableSharing described_vtables = VtableSharing::kOfEqualSize;
};

struct ProgramInput {
  ProgramFile program;
  std::optional<Layout> layout;  // of one that is described, and so only planned
  ProgramLayoutOptions layout_options;
};

/// Opens a program, or plans the one that a JSON file describes, which is a program before it is written.
[[nodiscard]] Result<ProgramInput> open_program_input(const ByteSource& file,
                                                      const ProgramInputOptions& options,
                                                      const ProgramLayoutOptions& layout);

/// The plan of the program with these changes.
[[nodiscard]] Result<ProgramPlan> plan(ProgramInput input, const ProgramChanges& changes);

}  // namespace etstream
