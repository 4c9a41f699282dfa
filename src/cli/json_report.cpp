// SPDX-License-Identifier: BSD-3-Clause
#include "cli/json_report.h"

#include <cstdio>
#include <nlohmann/json.hpp>

namespace etstream::cli {

void print_json(const nlohmann::ordered_json& report) {
  std::printf("%s\n", report.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

}  // namespace etstream::cli
