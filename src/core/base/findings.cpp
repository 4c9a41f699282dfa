// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/findings.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/base/text.h"

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

Error unsound(ErrorCode code, const std::string& file, const Findings& findings, AdviceTerm all) {
  constexpr std::size_t kShown = 3;
  const std::vector<Finding>& errors = findings.errors;
  Error out{code, "", 0, errors.front().file.value_or(file), errors.front().offset};
  for (std::size_t i = 0; i < std::min(kShown, errors.size()); ++i) {
    if (i > 0) out.message += "; ";
    out.message += about(Error{code, errors[i].message}, errors[i].file ? "" : file).message;
  }
  if (errors.size() == 1) return with_advice(std::move(out), errors.front().advice);
  if (errors.size() <= kShown) return out;
  out.message += text("; and {}", counted(errors.size() - kShown, "more error"));
  return with_advice(std::move(out), {all, " lists all"});
}

Result<void> require_sound(const std::string& file, const Findings& findings) {
  if (findings.ok()) return {};
  return unsound(ErrorCode::kCorrupt, file, findings, AdviceTerm::kVerify);
}

}  // namespace etstream
