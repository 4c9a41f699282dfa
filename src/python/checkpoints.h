// SPDX-License-Identifier: BSD-3-Clause
//
// Weights in files of any kind, in Python's terms.
#pragma once

#include <nanobind/nanobind.h>

namespace etstream::python {

void bind_checkpoints(nanobind::module_& module);

}  // namespace etstream::python
