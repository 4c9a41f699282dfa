// SPDX-License-Identifier: BSD-3-Clause
//
// What there is to say of a file, in Python's terms.
#pragma once

#include <nanobind/nanobind.h>

#include <nlohmann/json_fwd.hpp>

namespace etstream::python {

/// As json.loads() has it.
[[nodiscard]] nanobind::object object_of(const nlohmann::ordered_json& report);

void bind_reports(nanobind::module_& module);

}  // namespace etstream::python
