// SPDX-License-Identifier: BSD-3-Clause
//
// The heap of this process, in Python's terms.
#pragma once

#include <nanobind/nanobind.h>

namespace etstream::python {

void bind_heap(nanobind::module_& module);

}  // namespace etstream::python
