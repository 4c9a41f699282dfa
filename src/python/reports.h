// SPDX-License-Identifier: BSD-3-Clause
//
// What there is to say of a file, in Python's terms.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "python/bindings.h"

namespace etstream::python {

/// As json.loads() has it.
[[nodiscard]] Report object_of(const nlohmann::ordered_json& report);

}  // namespace etstream::python
