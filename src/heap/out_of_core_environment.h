// SPDX-License-Identifier: BSD-3-Clause
//
// How a command comes to have the heap.
#pragma once

#include "etstream/out_of_core.h"

namespace etstream {

/// Puts into the environment what has the library loaded, and what it reads there. Error: kInvalidArgument.
[[nodiscard]] Result<void> set_out_of_core_environment(const OutOfCoreOptions& options);

}  // namespace etstream
