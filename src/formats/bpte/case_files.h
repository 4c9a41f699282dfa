// SPDX-License-Identifier: BSD-3-Clause
//
// The names of the files of test cases.
#pragma once

#include <string>
#include <vector>

#include "etstream/bundled_program.h"

namespace etstream {

/// Returns the word that the names of a suite's files begin with, for each suite: its method's name if that
/// is a plain word that no suite before has, else "suite-" and its number.
[[nodiscard]] std::vector<std::string> suite_labels(const std::vector<BundledProgramFile::Suite>& suites);

}  // namespace etstream
