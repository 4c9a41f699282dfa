// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/findings.h"

#include <algorithm>
#include <string>
#include <utility>

namespace etstream {

void add_error(Findings& findings, Finding finding) {
  if (findings.errors.size() < kMostFindings) findings.errors.push_back(std::move(finding));
}

void add_warning(Findings& findings, Finding finding) {
  if (findings.warnings.size() < kMostFindings) findings.warnings.push_back(std::move(finding));
}

void add_warnings(Findings& findings, std::vector<Error> flaws) {
  for (Error& flaw : flaws) add_warning(findings, std::move(flaw));
}

void add_unknown_operator(Findings& findings, std::string_view name) {
  ++findings.unknown_operators;
  auto& names = findings.unknown_operator_names;
  const auto place = std::lower_bound(names.begin(), names.end(), name);
  if (names.size() < kMostFindings && (place == names.end() || *place != name)) names.emplace(place, name);
}

Result<void> note_corrupt(Result<void> checked, Findings& findings) {
  if (checked || checked.error().code != ErrorCode::kCorrupt) return checked;
  add_error(findings, std::move(checked).error());
  return {};
}

Error first_error(ErrorCode code, std::string_view file, const Findings& findings) {
  const Finding& first = findings.errors.front();
  return {code, first.message, 0, first.file.value_or(std::string(file)), first.offset};
}

}  // namespace etstream
