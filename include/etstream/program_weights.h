// SPDX-License-Identifier: BSD-3-Clause
//
// Whether a program gets what it needs from the files of tensor data (.ptd) that it is to run with.
//
//   const auto program = etstream::ProgramFile::open(etstream::ByteSource::file("model.pte").value());
//   const auto weights = etstream::TensorDataFile::open(etstream::ByteSource::file("model.ptd").value());
//   if (!program || !weights) return (program ? weights.error() : program.error());
//   const etstream::Findings findings = etstream::verify(*program, {&*weights}).value();
//   for (const etstream::Finding& error : findings.errors) std::puts(error.message.c_str());
#pragma once

#include <string>
#include <vector>

#include "etstream/export.h"
#include "etstream/findings.h"
#include "etstream/program.h"
#include "etstream/result.h"
#include "etstream/tensor_data_file.h"

namespace etstream {

/// Checks what ExecuTorch 1.5.1 does when it loads `program` with all of `weights`, which verify() finds
/// sound each. At most 100 errors and 100 warnings are found.
///
/// Errors: an external tensor whose key no file has, or has with another dtype, other sizes or dim_order, or
/// without a layout; named data that XNNPACK asks for and that neither the program nor a file has, or not as
/// long; a key in two files; a key that a delegate asks for in both the program and a file, with other bytes,
/// of which ExecuTorch takes the file's; files without any key.
/// Warnings: keys that nothing asks for; keys in both the program and a file with the same bytes.
///
/// Which keys other backends than XNNPACK ask for is not known: a key counts as asked for where their
/// delegates' data contains its bytes. Payloads are read for this, and where two are compared. Memory: 300
/// bytes a key and a tensor. Errors: kCorrupt for metadata that leads nowhere, which verify() of the file
/// reports; kTooLarge for names over 1 MiB; kIo.
[[nodiscard]] ETSTREAM_EXPORT Result<Findings> verify(const ProgramFile& program,
                                                      const std::vector<const TensorDataFile*>& weights);

/// The keys that `program` asks for and does not have, in order, each once: of external tensors, and of
/// constants of XNNPACK's delegates. Errors: as of verify().
[[nodiscard]] ETSTREAM_EXPORT Result<std::vector<std::string>> external_keys(const ProgramFile& program);

}  // namespace etstream
