// SPDX-License-Identifier: BSD-3-Clause
//
// The search for a name that comes twice.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace etstream {

/// Returns the first name in order that comes twice, if any does. `name_of` gives the name of an element of
/// `range`, a string that lives as long as the range. Time: n log n, whatever the names are. Names are
/// compared by their hashes first, as most begin alike.
template <class Range, class NameOf = std::identity>
[[nodiscard]] std::optional<std::string_view> first_repeated(const Range& range, NameOf name_of = {}) {
  std::vector<std::pair<std::size_t, std::string_view>> keys;
  keys.reserve(range.size());
  for (const auto& each : range) {
    const std::string_view name = std::invoke(name_of, each);
    keys.emplace_back(std::hash<std::string_view>()(name), name);
  }
  std::sort(keys.begin(), keys.end());
  std::optional<std::string_view> out;
  for (std::size_t i = 1; i < keys.size(); ++i) {
    if (keys[i] == keys[i - 1] && (!out || keys[i].second < *out)) out = keys[i].second;
  }
  return out;
}

}  // namespace etstream
