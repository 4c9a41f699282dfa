// SPDX-License-Identifier: BSD-3-Clause
//
// What a program does and with what, as people and programs want to see it.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "etstream/program_summary.h"

namespace etstream {

/// On standard output, of each method the first rows of each list.
void print_method(const MethodSummary& method);
void print_totals(const ProgramSummary& summary);

/// All of it: {"flatbuffer_size", "padding", "constants", "constant_bytes", "segments", "methods"}.
[[nodiscard]] nlohmann::ordered_json summary_to_json(const ProgramSummary& summary);

}  // namespace etstream
