// SPDX-License-Identifier: BSD-3-Clause
//
// The command's own words: those in the advice of the library's errors and findings, and the nearest to a
// slip of the keyboard.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "etstream/result.h"

namespace etstream::cli {

/// Returns the words of the command, which are its options and subcommands.
[[nodiscard]] std::string_view option_words(AdviceTerm term);

/// Returns the name that `word` was probably meant to be: the one that it becomes when the fewest letters are
/// left out, added, changed or swapped with the next one, at most a third of its letters. Returns the first
/// of several, and "" if there is none. Takes time by the product of the lengths, and refuses words over 64
/// bytes.
[[nodiscard]] std::string nearest(std::string_view word, const std::vector<std::string>& names);

}  // namespace etstream::cli
