// SPDX-License-Identifier: BSD-3-Clause
//
// What a file consists of, as the JSON that inspect reports.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "etstream/inspect.h"

namespace etstream {

/// As people read them: "float32 [1, 3]".
[[nodiscard]] std::vector<std::string> described(const std::vector<ValueInfo>& values);

/// `file` is what the report calls it. `duplicates` are in it where they were asked for.
[[nodiscard]] nlohmann::ordered_json inspection_to_json(const std::string& file, const FileInspection& found,
                                                        bool duplicates);

}  // namespace etstream
