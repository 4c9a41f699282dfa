// SPDX-License-Identifier: BSD-3-Clause
//
// The library's messages in the command's words: they end with what to do, "; bundle with program_alignment
// 128", and call an option what the library's structs do.
#pragma once

#include <string>

#include "etstream/findings.h"

namespace etstream::cli {

/// `message`, with the command's options where it says what to do.
[[nodiscard]] std::string with_option_names(std::string message);

/// The same for each of `findings`.
[[nodiscard]] Findings with_option_names(Findings findings);

}  // namespace etstream::cli
