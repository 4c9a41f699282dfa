// SPDX-License-Identifier: BSD-3-Clause
//
// How checks add to a Findings.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "etstream/findings.h"

namespace etstream {

/// How many of each kind a Findings takes; more would say nothing new.
inline constexpr std::size_t kMostFindings = 100;

void add_error(Findings& findings, std::string message);
void add_warning(Findings& findings, std::string message);
void add_warnings(Findings& findings, std::vector<std::string> messages);

}  // namespace etstream
