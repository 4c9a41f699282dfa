// SPDX-License-Identifier: BSD-3-Clause
//
// Lists that have an entry for each dimension of a tensor: sizes and dim_orders.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace etstream {

/// "[1, 3, 224]": for people, and as JSON.
template <class Integers>
[[nodiscard]] std::string list_text(const Integers& integers) {
  std::string out = "[";
  for (const auto integer : integers) out += (out.size() > 1 ? ", " : "") + std::to_string(integer);
  return out + "]";
}

/// Whether `order` has each of 0, 1, ... `dimensions` - 1 once and nothing else.
[[nodiscard]] inline bool is_permutation(const std::vector<std::uint8_t>& order, std::size_t dimensions) {
  std::vector<bool> seen(dimensions);
  for (const std::uint8_t dimension : order) {
    if (dimension >= dimensions || seen[dimension]) return false;
    seen[dimension] = true;
  }
  return order.size() == dimensions;
}

}  // namespace etstream
