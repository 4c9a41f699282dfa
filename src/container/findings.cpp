// SPDX-License-Identifier: BSD-3-Clause
#include "container/findings.h"

#include <utility>

namespace etstream {

void add_error(Findings& findings, std::string message) {
  if (findings.errors.size() < kMostFindings) findings.errors.push_back(std::move(message));
}

void add_warning(Findings& findings, std::string message) {
  if (findings.warnings.size() < kMostFindings) findings.warnings.push_back(std::move(message));
}

void add_warnings(Findings& findings, std::vector<std::string> messages) {
  for (std::string& message : messages) add_warning(findings, std::move(message));
}

}  // namespace etstream
