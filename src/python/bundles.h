// SPDX-License-Identifier: BSD-3-Clause
//
// Bundles and their test cases, in Python's terms.
#pragma once

#include <nanobind/nanobind.h>

#include "etstream/bundled_program.h"

namespace etstream::python {

/// A number is what Python says it is, a bool before an int. A tensor is a Tensor, or one of torch's or
/// NumPy's. Raises TypeError for something else.
[[nodiscard]] Value value_of(nanobind::handle object);

}  // namespace etstream::python
