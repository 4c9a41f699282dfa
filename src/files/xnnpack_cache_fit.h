// SPDX-License-Identifier: BSD-3-Clause
//
// Checks whether a weight cache of XNNPACK has the weights that a program's delegates look up in it.
#pragma once

#include "etstream/findings.h"
#include "etstream/program.h"
#include "etstream/result.h"
#include "etstream/verify.h"
#include "etstream/xnnpack_cache_file.h"

namespace etstream {

/// Compares the names in the cache with those that ExecuTorch 1.5.1 may look up, and warns of the difference.
/// Delegates whose data is damaged look up nothing. Memory: that of the names. Errors: kTooLarge for names
/// that share their bytes many times; kIo.
[[nodiscard]] Result<XnnpackCacheFit> fit_xnnpack_cache(const ProgramFile& program,
                                                        const XnnpackCacheFile& cache, Findings& findings);

}  // namespace etstream
