// SPDX-License-Identifier: BSD-3-Clause
//
// Plans of files, and where they are written to, in Python's terms.
#pragma once

#include <nanobind/nanobind.h>

namespace etstream::python {

void bind_file_plans(nanobind::module_& module);

}  // namespace etstream::python
