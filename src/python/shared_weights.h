// SPDX-License-Identifier: BSD-3-Clause
//
// Programs that get their weights from one file, in Python's terms.
#pragma once

#include <nanobind/nanobind.h>

namespace etstream::python {

void bind_shared_weights(nanobind::module_& module);

}  // namespace etstream::python
