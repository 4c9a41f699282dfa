// SPDX-License-Identifier: BSD-3-Clause
//
// Bundles and their test cases, in Python's terms.
#pragma once

#include <nanobind/nanobind.h>

namespace etstream::python {

void bind_bundles(nanobind::module_& module);

}  // namespace etstream::python
