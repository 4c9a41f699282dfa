// SPDX-License-Identifier: BSD-3-Clause
//
// What running test cases on ExecuTorch's Python runtime takes: the cases, and comparing what they give.
#pragma once

#include <nanobind/nanobind.h>

namespace etstream::python {

void bind_test_cases(nanobind::module_& module);

}  // namespace etstream::python
