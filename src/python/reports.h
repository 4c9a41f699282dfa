// SPDX-License-Identifier: BSD-3-Clause
//
// What there is to say of a file, in Python's terms.
#pragma once

#include <nanobind/nanobind.h>

namespace etstream::python {

void bind_reports(nanobind::module_& module);

}  // namespace etstream::python
