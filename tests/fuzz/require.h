// SPDX-License-Identifier: BSD-3-Clause
//
// require(): the promises that a fuzz target checks for its input.
#pragma once

#include <cstdio>
#include <cstdlib>

/// Ends the target, so that libFuzzer keeps the input, unless `condition` holds.
inline void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "FAILED: %s\n", what);
  std::abort();
}
