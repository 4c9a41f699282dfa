// SPDX-License-Identifier: BSD-3-Clause
//
// Reports for programs: JSON, on standard output or not.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace etstream {

/// Bytes that are not UTF-8, as a path may have, become U+FFFD.
[[nodiscard]] std::string json_text(const nlohmann::ordered_json& report);
/// Without white space.
[[nodiscard]] std::string compact_json_text(const nlohmann::ordered_json& report);
void print_json(const nlohmann::ordered_json& report);

}  // namespace etstream
