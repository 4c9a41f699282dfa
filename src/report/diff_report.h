// SPDX-License-Identifier: BSD-3-Clause
//
// What differs between two files, as the JSON that diff reports.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "etstream/diff.h"

namespace etstream {

/// Leaves the differences of content.
void ignore_layout(FileDiff& found);

/// `a` and `b` are what the report calls the files.
[[nodiscard]] nlohmann::ordered_json differences_to_json(const std::string& a, const std::string& b,
                                                         const FileDiff& found);

}  // namespace etstream
