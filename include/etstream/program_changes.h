// SPDX-License-Identifier: BSD-3-Clause
//
// Rewrites a program (.pte) with changed content, without exporting it again: without some methods, without
// stack traces, or with constants moved to a tensor data file (.ptd) or in from one.
//
//   auto program = etstream::ProgramFile::open(etstream::ByteSource::file("model.pte").value());
//   if (!program) return program.error();
//   auto planned = etstream::plan(*program, etstream::ProgramChanges{.drop_methods = {"train"}});
//   if (!planned) return planned.error();
//   const auto sink = etstream::open_file_sink("smaller.pte").value();
//   if (const auto written = etstream::write(planned->program, *sink); !written) return written.error();
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/export.h"
#include "etstream/file_plan.h"
#include "etstream/program.h"
#include "etstream/program_description.h"
#include "etstream/program_plan.h"
#include "etstream/result.h"
#include "etstream/tensor_data.h"
#include "etstream/tensor_data_file.h"

namespace etstream {

/// The keys of constants in a tensor data file.
struct ConstantsOut {
  /// Maps a constant to its key, by the SHA-256 of its bytes (64 hexadecimal digits, lower case) or by its
  /// number in the program's constants (decimal). The key of any other constant is its tensor's fully
  /// qualified name, or its SHA-256 if it has no name. If tensors of several layouts share the bytes, the
  /// keys of all but the first are "KEY:TYPE[SIZES]". An entry for a constant that the program lacks is an
  /// error.
  std::map<std::string, std::string> keys;
};

/// Reads ConstantsOut::keys from a JSON object. Errors: kTooLarge over 64 MiB; kCorrupt for invalid JSON;
/// kInvalidArgument for anything but an object of strings; read errors.
[[nodiscard]] ETSTREAM_EXPORT Result<std::map<std::string, std::string>> read_constant_keys(
    const ByteSource& json);

/// Changes of a program's content; options of its layout are ProgramPlanOptions.
struct ProgramChanges {
  /// The names of methods to drop, with the constants, mutable data and delegate data that only they use, and
  /// the named data whose keys occur in the data of their delegates and of no others.
  std::vector<std::string> drop_methods = {};
  /// Drops the stack traces, which show where in the model's source an instruction comes from.
  bool drop_stack_traces = false;
  /// Moves all constants, and named data except metadata, into a tensor data file, without which the program
  /// can't be loaded any more. ExecuTorch loads both with `Module(program, weights)`.
  std::optional<ConstantsOut> constants_out = std::nullopt;
  /// Moves external tensors and named data in from these files, which must only outlive the call. Tensors
  /// that are in none of the files stay external.
  std::vector<const TensorDataFile*> constants_in = {};

  /// Metadata to add: values by key, without the prefix "metadata."; see program_metadata.h. It replaces
  /// existing values under these keys, and stays in the program when constants are moved out.
  std::map<std::string, ByteSource> metadata = {};

  /// Returns whether nothing is to change.
  [[nodiscard]] bool empty() const noexcept {
    return drop_methods.empty() && !drop_stack_traces && !constants_out && constants_in.empty() &&
           metadata.empty();
  }
};

/// The plan of a changed program, and what has moved out of it.
struct ProgramPlan {
  FilePlan program;
  std::optional<TensorData> tensor_data;  // if constants are moved out
};

/// Plans the program with these changes and options. Reads constants if their SHA-256 is needed. Errors:
/// those of plan(ProgramFile, ProgramPlanOptions); kNotFound for a method or a constant that the program does
/// not have; kInvalidArgument for dropping all methods, for a key that two constants would have, for moving
/// constants out where there are none, and for moving constants both ways.
[[nodiscard]] ETSTREAM_EXPORT Result<ProgramPlan> plan(const ProgramFile& program,
                                                       const ProgramChanges& changes,
                                                       const ProgramPlanOptions& options = {});

/// Does the same for a described program, which is packed only once, with its changes. Further errors: those
/// of plan(ProgramDescription).
[[nodiscard]] ETSTREAM_EXPORT Result<ProgramPlan> plan(const ProgramDescription& program,
                                                       const ProgramChanges& changes,
                                                       const ProgramPlanOptions& options = {});

}  // namespace etstream
