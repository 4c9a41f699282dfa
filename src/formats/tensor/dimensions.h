// SPDX-License-Identifier: BSD-3-Clause
//
// Lists that have an entry for each dimension of a tensor: sizes and dim_orders.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "etstream/tensor.h"

namespace etstream {

/// Formats a list for people, and as JSON: "[1, 3, 224]".
template <class Integers>
[[nodiscard]] std::string list_text(const Integers& integers) {
  std::string out = "[";
  for (const auto integer : integers) out += (out.size() > 1 ? ", " : "") + std::to_string(integer);
  return out + "]";
}

/// Returns whether `order` has each of 0, 1, ... `dimensions` - 1 once and nothing else.
[[nodiscard]] inline bool is_permutation(const std::vector<std::uint8_t>& order, std::size_t dimensions) {
  std::vector<bool> seen(dimensions);
  for (const std::uint8_t dimension : order) {
    if (dimension >= dimensions || seen[dimension]) return false;
    seen[dimension] = true;
  }
  return order.size() == dimensions;
}

/// Returns the problem of a tensor by itself, as the end of a sentence: a type that ExecuTorch does not know,
/// too many dimensions, a dim_order that is no permutation, data that does not have the size that its shape
/// implies.
[[nodiscard]] std::optional<std::string> problem_of(const Tensor& tensor);

/// Returns the layout of a contiguous tensor; nothing if it has more dimensions, or is larger, than
/// ExecuTorch's tensors.
[[nodiscard]] inline std::optional<TensorLayout> contiguous_layout(ScalarType type,
                                                                   std::span<const std::uint64_t> shape) {
  if (shape.size() > kMostDimensions) return std::nullopt;
  TensorLayout out{type, {}, contiguous_dim_order(shape.size())};
  out.sizes.reserve(shape.size());
  for (const std::uint64_t size : shape) {
    if (size > std::numeric_limits<std::int32_t>::max()) return std::nullopt;
    out.sizes.push_back(static_cast<std::int32_t>(size));
  }
  return out;
}

}  // namespace etstream
