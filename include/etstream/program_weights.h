// SPDX-License-Identifier: BSD-3-Clause
//
// Checks whether a program gets what it needs from the tensor data files (.ptd) that it is to run with.
//
//   const auto program = etstream::ProgramFile::open(etstream::ByteSource::file("model.pte").value());
//   const auto weights = etstream::TensorDataFile::open(etstream::ByteSource::file("model.ptd").value());
//   if (!program || !weights) return (program ? weights.error() : program.error());
//   const etstream::Findings findings = etstream::verify(*program, {&*weights}).value();
//   for (const etstream::Finding& error : findings.errors) std::puts(full_message(error).c_str());
#pragma once

#include <string>
#include <vector>

#include "etstream/export.h"
#include "etstream/findings.h"
#include "etstream/program.h"
#include "etstream/result.h"
#include "etstream/tensor_data_file.h"

namespace etstream {

/// Checks whether ExecuTorch 1.5.1 can load `program` with all of `weights`, each of which verify() finds
/// sound by itself. Finds at most 100 errors and 100 warnings.
///
/// Errors: an external tensor whose key is in no file, or in one with another dtype, other sizes or another
/// dim_order, or without a layout; named data that a delegate asks for and that is in neither the program nor
/// a file, or is too short; a key in two files; a key that a delegate asks for and that has different bytes
/// in the program and in a file, of which ExecuTorch uses the file's; files without any key. Warnings: keys
/// that nothing asks for; keys with the same bytes in both the program and a file; a different layout or
/// longer data that ExecuTorch does not compare, as long as no read is out of bounds.
///
/// The keys that delegates of XNNPACK, Vulkan and Ethos-U ask for are read from their data. Those of
/// other backends are not known: a key counts as asked for if their data contains its bytes. Payloads are
/// read for this, and to compare two of them. Memory: 300 bytes per key and per tensor. Errors: kCorrupt for
/// a reference in metadata that can't be followed, which verify() of the file reports; kTooLarge for names
/// over 1 MiB; kIo.
[[nodiscard]] ETSTREAM_EXPORT Result<Findings> verify(const ProgramFile& program,
                                                      const std::vector<const TensorDataFile*>& weights);

/// Returns the keys that `program` asks for and does not contain, sorted, each once: those of external
/// tensors, and of named data of delegates. Errors: as of verify().
[[nodiscard]] ETSTREAM_EXPORT Result<std::vector<std::string>> external_keys(const ProgramFile& program);

}  // namespace etstream
