// SPDX-License-Identifier: BSD-3-Clause
//
// Slips of the keyboard.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace etstream::cli {

/// Returns the name that `word` was likely meant to be: the one that the fewest letters left out, added,
/// changed or swapped with the next one make of it, a third of its letters at most; of several the first. ""
/// where there is none. Takes time by the product of the lengths, and refuses words over 64 bytes.
[[nodiscard]] std::string nearest(std::string_view word, const std::vector<std::string>& names);

}  // namespace etstream::cli
