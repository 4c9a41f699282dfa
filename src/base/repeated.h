// SPDX-License-Identifier: BSD-3-Clause
//
// Whether names are all different.
#pragma once

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

namespace etstream {

/// A name that comes twice, if any does. Time: n log n, whatever the names are.
[[nodiscard]] inline std::optional<std::string_view> first_repeated(std::vector<std::string_view> names) {
  std::sort(names.begin(), names.end());
  const auto found = std::adjacent_find(names.begin(), names.end());
  return found == names.end() ? std::nullopt : std::optional(*found);
}

}  // namespace etstream
