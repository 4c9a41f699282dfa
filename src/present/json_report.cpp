// SPDX-License-Identifier: BSD-3-Clause
#include "present/reports.h"

#include <cstddef>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "core/base/text.h"

namespace etstream {
namespace {

/// Escapes control characters beyond 0x1f. JSON allows them in strings, but a terminal acts on them.
std::string without_controls(std::string json) {
  std::string out;
  std::size_t done = 0;
  const auto next = [&](std::size_t at) { return json.find_first_of("\x7f\xc2\xd8\xe2", at); };
  for (std::size_t at = 0; (at = next(at)) != std::string::npos; ++at) {
    const auto [size, code] = character_at(std::string_view(json).substr(at));
    if (size == 0 || !is_control(code)) continue;
    out.append(json, done, at - done) += text("\\u{:04x}", static_cast<std::uint32_t>(code));
    done = at + size;
  }
  return done == 0 ? std::move(json) : out.append(json, done);
}

}  // namespace

std::string json_text(const nlohmann::ordered_json& report, int indent) {
  return without_controls(report.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace));
}

std::vector<std::string> full_messages(const std::vector<Finding>& findings, TermWords words) {
  std::vector<std::string> messages;
  messages.reserve(findings.size());
  for (const Finding& finding : findings) messages.push_back(full_message(finding, words));
  return messages;
}

void print_json(const nlohmann::ordered_json& report) { std::printf("%s\n", json_text(report).c_str()); }

std::string filled_page(std::string_view page, std::string_view json) {
  constexpr std::string_view kPlace = "PAGE DATA";
  const std::size_t place = page.find(kPlace);
  std::string out(page.substr(0, place));
  out.reserve(page.size() + json.size());
  for (const char c : json) {
    // This is only in strings. Unescaped, it could end the script that has the data.
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out += page.substr(place + kPlace.size());
}

nlohmann::ordered_json findings_to_json(const Findings& findings, TermWords words) {
  return {{"errors", full_messages(findings.errors, words)},
          {"warnings", full_messages(findings.warnings, words)}};
}

}  // namespace etstream
