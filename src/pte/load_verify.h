// SPDX-License-Identifier: BSD-3-Clause
//
// A check whether ExecuTorch loads a program at all.
#pragma once

#include "etstream/findings.h"
#include "etstream/result.h"
#include "pte/program_model.h"

namespace etstream {

/// The place that a runtime loads a program from: a file of its own, or memory, as with a bundle.
enum class LoadedFrom { kFile, kMemory };

/// Adds to `findings` why ExecuTorch 1.5.1 refuses to load a program that is sound, or its methods: a later
/// schema version; constants that are all empty, which are found in memory alone. The program can still be
/// read and rewritten. Time: in proportion to the values of its methods. Errors: as of Program.
[[nodiscard]] Result<void> verify_load(const pte::Program& program, LoadedFrom from, Findings& findings);

}  // namespace etstream
