// SPDX-License-Identifier: BSD-3-Clause
//
// A program (.pte) written again with other content, without exporting it again: methods left out, stack
// traces left out, constants moved to a tensor data file (.ptd) or in from one.
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

/// Where constants get their keys from in a tensor data file.
struct ConstantsOut {
  /// A constant's key, by the SHA-256 of its bytes (64 hexadecimal digits, lower case) or by its number in
  /// the program's constants (decimal). One that is not in it goes by its tensor's fully qualified name where
  /// it has one, otherwise by its SHA-256. Where tensors of several layouts share the bytes, all but the
  /// first go by "KEY:TYPE[SIZES]".
  std::map<std::string, std::string> keys;
};

/// ConstantsOut::keys from a JSON object. Errors: kTooLarge over 64 MiB; kCorrupt for what is not JSON;
/// kInvalidArgument for anything but an object of strings; those of reading.
[[nodiscard]] ETSTREAM_EXPORT Result<std::map<std::string, std::string>> read_constant_keys(
    const ByteSource& json);

struct ProgramChanges {
  /// Names of methods to leave out, with the constants, mutable data and delegates' data that only they use,
  /// and named data whose key the data of their delegates holds and no other does.
  std::vector<std::string> drop_methods = {};
  /// Leaves out where instructions come from in the model's source.
  bool drop_stack_traces = false;
  /// Moves all constants and named data but metadata into a tensor data file, which the program then can't be
  /// loaded without. ExecuTorch loads it by `Module(program, weights)`.
  std::optional<ConstantsOut> constants_out = std::nullopt;
  /// Moves external tensors, and named data, in from these files, which only have to outlive the call. What
  /// none of them has stays external.
  std::vector<const TensorDataFile*> constants_in = {};

  /// What the program is to say of its model: values by their keys, which come without "metadata."; see
  /// program_metadata.h. It takes the place of what is there under these keys, and stays in the program where
  /// constants are moved out.
  std::map<std::string, ByteSource> metadata = {};

  [[nodiscard]] bool empty() const noexcept {
    return drop_methods.empty() && !drop_stack_traces && !constants_out && constants_in.empty() &&
           metadata.empty();
  }
};

struct ProgramPlan {
  FilePlan program;
  std::optional<TensorData> tensor_data;  // where constants are moved out
};

/// The plan of the program with these changes, under these options. Constants are read where their SHA-256 is
/// asked for. Errors: those of plan(ProgramFile, ProgramPlanOptions); kNotFound for a method that the
/// program does not have, kInvalidArgument for dropping all, for a key that two constants would have, for
/// moving constants out where there are none, and for constants moved both ways.
[[nodiscard]] ETSTREAM_EXPORT Result<ProgramPlan> plan(const ProgramFile& program,
                                                       const ProgramChanges& changes,
                                                       const ProgramPlanOptions& options = {});

/// The same of a program that is described, which is packed once, with its changes. Errors: those of
/// plan(ProgramDescription) too.
[[nodiscard]] ETSTREAM_EXPORT Result<ProgramPlan> plan(const ProgramDescription& program,
                                                       const ProgramChanges& changes,
                                                       const ProgramPlanOptions& options = {});

}  // namespace etstream
