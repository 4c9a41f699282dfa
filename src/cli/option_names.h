// SPDX-License-Identifier: BSD-3-Clause
//
// Turns the library's messages into the command's words. The messages end with advice, "; bundle with
// program_alignment 128", and call an option by its name in the library's structs.
#pragma once

#include <string>

#include "etstream/findings.h"

namespace etstream::cli {

/// Returns `message` with the command's options in its advice.
[[nodiscard]] std::string with_option_names(std::string message);

/// Does the same for each of `findings`.
[[nodiscard]] Findings with_option_names(Findings findings);

}  // namespace etstream::cli
