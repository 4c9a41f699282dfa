// SPDX-License-Identifier: BSD-3-Clause
//
// The command's words in the advice of the library's errors and findings.
#pragma once

#include <string_view>

#include "etstream/advice.h"

namespace etstream::cli {

/// Returns the words of the command, which are its options and subcommands.
[[nodiscard]] std::string_view option_words(AdviceTerm term);

}  // namespace etstream::cli
