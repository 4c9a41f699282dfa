// SPDX-License-Identifier: BSD-3-Clause
#include "report/json_report.h"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/text.h"

namespace etstream {
namespace {

/// JSON lets control characters beyond 0x1f stand in strings, where a terminal takes them.
std::string without_controls(std::string json) {
  std::size_t at = 0;
  const auto is_control = [&](std::size_t i) {
    const auto byte = [&](std::size_t j) { return static_cast<unsigned char>(json[j]); };
    return byte(i) == 0x7f || (byte(i) == 0xc2 && i + 1 < json.size() && byte(i + 1) < 0xa0);
  };
  while (at < json.size() && !is_control(at)) ++at;
  if (at == json.size()) return json;
  std::string out(json, 0, at);
  for (; at < json.size(); ++at) {
    if (!is_control(at)) {
      out += json[at];
    } else if (json[at] == 0x7f) {
      out += "\\u007f";
    } else {
      const auto low = static_cast<unsigned char>(json[++at]);
      out += text("\\u00{}{}", std::string_view("89").substr((low >> 4) - 8U, 1),
                  std::string_view("0123456789abcdef").substr(low & 15U, 1));
    }
  }
  return out;
}

}  // namespace

std::string json_text(const nlohmann::ordered_json& report) {
  return without_controls(report.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

std::string compact_json_text(const nlohmann::ordered_json& report) {
  return without_controls(report.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

void print_json(const nlohmann::ordered_json& report) { std::printf("%s\n", json_text(report).c_str()); }

}  // namespace etstream
