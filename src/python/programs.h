// SPDX-License-Identifier: BSD-3-Clause
//
// Programs and tensor data, in Python's terms.
#pragma once

#include <nanobind/nanobind.h>

namespace etstream::python {

void bind_programs(nanobind::module_& module);

}  // namespace etstream::python
