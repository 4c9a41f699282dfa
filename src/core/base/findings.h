// SPDX-License-Identifier: BSD-3-Clause
//
// Functions by which checks add to a Findings.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/try.h"
#include "etstream/result.h"

namespace etstream {

/// The most findings of each kind that a Findings takes; more would say nothing new.
inline constexpr std::size_t kMostFindings = 100;

void add_error(Findings& findings, Finding finding);
void add_warning(Findings& findings, Finding finding);
void add_warnings(Findings& findings, std::vector<Error> flaws);
/// Counts an operator whose kernels are not known, and lists its name, once.
void add_unknown_operator(Findings& findings, std::string_view name);

/// Makes a finding of a kCorrupt error, and passes on other errors.
[[nodiscard]] Result<void> note_corrupt(Result<void> checked, Findings& findings);

/// Returns an error with the first three of the findings' errors, of which there is at least one, and the
/// number of the others. It names `file` where an error names none. If there are others, the advice is that
/// `all` lists them.
[[nodiscard]] Error unsound(ErrorCode code, const std::string& file, const Findings& findings,
                            AdviceTerm all);

/// Verifies `file` before it is used, and warns of the warnings. Errors: those of its verify(), and of
/// require_sound().
template <class File>
[[nodiscard]] Result<void> require_sound(const File& file, const Warn& warn = {}) {
  Findings findings;
  ETSTREAM_TRY(file.verify(findings));
  if (warn) std::for_each(findings.warnings.begin(), findings.warnings.end(), warn);
  return require_sound(file.file().name(), findings);
}

}  // namespace etstream
