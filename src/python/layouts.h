// SPDX-License-Identifier: BSD-3-Clause
//
// Layouts, and where they are written to, in Python's terms.
#pragma once

#include <nanobind/nanobind.h>

namespace etstream::python {

void bind_layouts(nanobind::module_& module);

}  // namespace etstream::python
