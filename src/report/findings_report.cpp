// SPDX-License-Identifier: BSD-3-Clause
#include "report/findings_report.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace etstream {
namespace {

std::vector<std::string> messages_of(const std::vector<Finding>& findings) {
  std::vector<std::string> messages;
  messages.reserve(findings.size());
  for (const Finding& finding : findings) messages.push_back(finding.message);
  return messages;
}

}  // namespace

nlohmann::ordered_json findings_to_json(const Findings& findings) {
  return {{"errors", messages_of(findings.errors)}, {"warnings", messages_of(findings.warnings)}};
}

}  // namespace etstream
