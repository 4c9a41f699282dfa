// SPDX-License-Identifier: BSD-3-Clause
#include "report/json_report.h"

#include <cstdio>
#include <nlohmann/json.hpp>

namespace etstream {

std::string json_text(const nlohmann::ordered_json& report) {
  return report.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

void print_json(const nlohmann::ordered_json& report) { std::printf("%s\n", json_text(report).c_str()); }

}  // namespace etstream
