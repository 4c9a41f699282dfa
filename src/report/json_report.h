// SPDX-License-Identifier: BSD-3-Clause
//
// JSON of reports: as text, on standard output, and as the data of a page for a browser.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "etstream/findings.h"

namespace etstream {

/// Bytes that are not UTF-8, as a path may have, become U+FFFD. An `indent` of -1 leaves out white space.
[[nodiscard]] std::string json_text(const nlohmann::ordered_json& report, int indent = 2);
void print_json(const nlohmann::ordered_json& report);

/// `page`, one of pages.h, with `json` as its data: one file that needs no other, nor a network. Whatever
/// texts are in `json`, they stay data.
[[nodiscard]] std::string filled_page(std::string_view page, std::string_view json);

/// {"errors": [MESSAGE...], "warnings": [MESSAGE...]}
[[nodiscard]] nlohmann::ordered_json findings_to_json(const Findings& findings);

}  // namespace etstream
