// SPDX-License-Identifier: BSD-3-Clause
//
// The comparison of an output with the one that a test case expects, wherever the output comes from.
#pragma once

#include <string>

#include "etstream/result.h"
#include "etstream/tensor.h"
#include "etstream/verify.h"

namespace etstream {

/// Compares an output with the expected one, whose dim_order it is read in, and adds the result to the run,
/// which ends with other outputs if it is not as expected. An error of `actual` is a problem of the output,
/// except for kIo, which is returned, as are errors of reading.
[[nodiscard]] Result<void> add_output(MethodRun& run, const Value& expected, Result<Value> actual,
                                      const Tolerance& tolerance, std::string file = {});

}  // namespace etstream
