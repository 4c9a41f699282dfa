// SPDX-License-Identifier: BSD-3-Clause
//
// A check whether ExecuTorch loads a program at all.
#pragma once

#include "etstream/program.h"
#include "etstream/result.h"

namespace etstream {

/// The place that a runtime loads a program from: a file of its own, or memory, as with a bundle.
enum class LoadedFrom { kFile, kMemory };

/// Adds to `findings` what ProgramFile::verify() finds. If it finds no error, adds the reasons why ExecuTorch
/// 1.5.1 refuses to load the program or its methods: a later schema version; constants that are all empty,
/// which it finds in memory alone. Such a program can still be read and rewritten. Returns whether verify()
/// found no error. Time: in proportion to the values of its methods. Errors: those of ProgramFile::verify().
[[nodiscard]] Result<bool> verify_loadable(const ProgramFile& program, LoadedFrom from, Findings& findings);

}  // namespace etstream
