// SPDX-License-Identifier: BSD-3-Clause
//
// What the command and Python both do.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/compare.h"
#include "etstream/file_plan.h"
#include "etstream/findings.h"
#include "etstream/program_changes.h"
#include "etstream/program_schema.h"
#include "etstream/rename_rules.h"
#include "etstream/result.h"
#include "etstream/shared_weights.h"
#include "etstream/writer_version.h"

namespace etstream {

/// What `pte` makes a program from: another one, or a description in JSON.
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

/// The ready-made rules of this name, or those in the file at this path.
[[nodiscard]] Result<RenameRules> open_rename_rules(const std::string& name);

/// The tolerance of outputs: the defaults, where they are not given. Integers may differ by `atol` too.
[[nodiscard]] Tolerance output_tolerance(std::optional<double> atol, std::optional<double> rtol);

/// A program that gets its weights from a file that others share.
struct SharingInput {
  std::string name;  // of the payload in a container, and what reports call it
  ByteSource program;
};

struct SharingOptions {
  std::uint64_t least_size = kDefaultLeastShared;
  bool into_container = false;            // also plan a fat container of the programs as they become
  std::uint32_t container_alignment = 1;  // of its payloads
};

struct SharingPlan {
  SharedWeightsPlan files;
  std::optional<FilePlan> container;
};

/// Opens, checks and plans programs that share weights, with the container that they may go into. Errors:
/// those of ProgramFile::open() and of plan(SharedWeights), plan(FatContainer); kCorrupt for a program that
/// verify() finds an error in.
[[nodiscard]] Result<SharingPlan> plan_sharing(const std::vector<SharingInput>& inputs,
                                               const SharingOptions& options);

}  // namespace etstream
