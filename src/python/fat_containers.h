// SPDX-License-Identifier: BSD-3-Clause
//
// Fat containers, in Python's terms.
#pragma once

#include <nanobind/nanobind.h>

namespace etstream::python {

void bind_fat_containers(nanobind::module_& module);

}  // namespace etstream::python
