// SPDX-License-Identifier: BSD-3-Clause
//
// Packages of the native backend, in Python's terms.
#pragma once

#include <nanobind/nanobind.h>

namespace etstream::python {

void bind_native_packages(nanobind::module_& module);

}  // namespace etstream::python
