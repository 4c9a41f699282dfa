// SPDX-License-Identifier: BSD-3-Clause
//
// Functions by which checks add to a Findings.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "etstream/findings.h"
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

/// Returns the first of the errors, of which there is at least one, as an Error. If it names no file, it is
/// about `file`.
[[nodiscard]] Error first_error(ErrorCode code, std::string_view file, const Findings& findings);

}  // namespace etstream
