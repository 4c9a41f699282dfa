// SPDX-License-Identifier: BSD-3-Clause
//
// Patterns that choose names, as in a shell.
#pragma once

#include <string_view>

namespace etstream {

/// Returns whether `pattern` matches all of `name`. In a pattern, * stands for any run of bytes, ? for any
/// byte, and every other byte for itself. Time: at most the product of their lengths.
[[nodiscard]] constexpr bool matches_glob(std::string_view pattern, std::string_view name) noexcept {
  std::size_t p = 0;
  std::size_t n = 0;
  std::size_t star = std::string_view::npos;  // the last one met, which takes as little as it can
  std::size_t resume = 0;                     // where in `name` what follows that star is tried
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace etstream
