// SPDX-License-Identifier: BSD-3-Clause
//
// Findings for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "etstream/findings.h"

namespace etstream {

/// {"errors": [MESSAGE...], "warnings": [MESSAGE...]}
[[nodiscard]] nlohmann::ordered_json findings_to_json(const Findings& findings);

}  // namespace etstream
