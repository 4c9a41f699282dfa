// SPDX-License-Identifier: BSD-3-Clause
//
// Flatbuffers of any schema as JSON, in Python's terms.
#pragma once

#include <nanobind/nanobind.h>

namespace etstream::python {

void bind_flatbuffer_texts(nanobind::module_& module);

}  // namespace etstream::python
