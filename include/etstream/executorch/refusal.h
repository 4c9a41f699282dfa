// SPDX-License-Identifier: BSD-3-Clause
//
// Explains why ExecuTorch refuses a program. ExecuTorch returns only a number; this compares what the program
// needs with what is linked and given.
//
//   const auto model = etstream::ByteSource::file("model.pte").value();
//   const auto loader = etstream::open_program_loader(model).value();
//   const auto program = executorch::runtime::Program::load(loader.get());
//   if (!program.ok()) return etstream::refusal(program.error(), "model.pte", {.program = model});
#pragma once

#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/named_data_map.h>

#include <string>
#include <string_view>

#include "etstream/byte_source.h"
#include "etstream/export.h"
#include "etstream/result.h"

namespace etstream {

/// A program that was to be loaded, or a method of it.
struct LoadAttempt {
  ByteSource program = {};  // all of it; empty where it is not known, and then no cause is found
  std::string method = {};  // "" for the program
  const executorch::runtime::NamedDataMap* named_data = nullptr;  // that it was given
};

/// Returns "`what`: ExecuTorch says Error::OperatorMissing (0x14): operator 'aten::sin.out' has no kernel
/// here; link what registers it". The cause is that of the file: operators without kernels, backends that are
/// not registered or not available, keys that are neither in the program nor in `named_data`, or the first
/// error that verify() finds in the program. Where it finds none, the words are those of the number alone.
///
/// The code is kUnsupported for what is not linked or not given, kOutOfMemory, kInvalidArgument, kIo, and
/// kCorrupt for all else. Reads the program's metadata. May be called from several threads at once.
[[nodiscard]] ETSTREAM_EXPORT Error refusal(executorch::runtime::Error error, std::string_view what,
                                            const LoadAttempt& attempt = {});

}  // namespace etstream
