// SPDX-License-Identifier: BSD-3-Clause
//
// FileBytes: a bytes object of Python's whose bytes are those of a file, where it is mapped.
#pragma once

#include <nanobind/nanobind.h>

namespace etstream::python {

void bind_file_bytes(nanobind::module_& module);

}  // namespace etstream::python
