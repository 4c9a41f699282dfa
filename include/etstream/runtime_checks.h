// SPDX-License-Identifier: BSD-3-Clause
//
// Checks that a program's instructions give ExecuTorch 1.5.1 what it takes unchecked.
//
//   const auto program = etstream::ProgramFile::open(etstream::ByteSource::file("model.pte").value());
//   if (!program) return program.error();
//   etstream::Findings findings;
//   if (const auto done = program->verify(findings); !done) return done.error();
//   if (findings.ok() && !etstream::verify_calls(*program, findings)) std::puts("not read");
//   for (const etstream::Finding& error : findings.errors) std::puts(full_message(error).c_str());
#pragma once

#include "etstream/program.h"
#include "etstream/result.h"

namespace etstream {

/// Checks a program in which ProgramFile::verify() has found no error: on every path through the
/// instructions, each call must pass the kinds of arguments, the lists and the memory that the operators of
/// ExecuTorch 1.5.1 and XNNPACK's delegates take. An error in `findings` is a call with which the runtime
/// would read or write where it must not, or which it refuses; the program can still be read and rewritten.
/// Operators that are not known are counted and named instead. docs/runtime-checks.md has all that this
/// promises. Time: in proportion to the file's size; memory: to its metadata. Errors: kIo, kOutOfMemory.
[[nodiscard]] ETSTREAM_EXPORT Result<void> verify_calls(const ProgramFile& program, Findings& findings);

}  // namespace etstream
