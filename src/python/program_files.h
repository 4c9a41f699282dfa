// SPDX-License-Identifier: BSD-3-Clause
//
// Programs that are there, taken apart or written again, in Python's terms.
#pragma once

#include <nanobind/nanobind.h>

namespace etstream::python {

void bind_program_files(nanobind::module_& module);

}  // namespace etstream::python
