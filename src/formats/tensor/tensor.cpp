// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/tensor.h"

#include <numeric>

#include "core/base/text.h"
#include "etstream/tensor_layout.h"
#include "formats/tensor/dimensions.h"

namespace etstream {

std::vector<std::uint8_t> contiguous_dim_order(std::size_t dimensions) {
  std::vector<std::uint8_t> order(dimensions);
  std::iota(order.begin(), order.end(), std::uint8_t{0});
  return order;
}

std::string describe(const TensorLayout& layout) {
  return text("{} {}", name_of(layout.scalar_type), list_text(layout.sizes));
}

std::optional<std::string> problem_of(const Tensor& tensor) {
  if (item_size(tensor.scalar_type) == 0) {
    return text("has scalar type {}, which ExecuTorch doesn't know", static_cast<int>(tensor.scalar_type));
  }
  if (tensor.sizes.size() > kMostDimensions) {
    return text("has {} dimensions, expected at most {}", tensor.sizes.size(), kMostDimensions);
  }
  if (!is_permutation(tensor.dim_order, tensor.sizes.size())) {
    return text("has a dim_order that is not a permutation of its {} dimensions", tensor.sizes.size());
  }
  const auto expected = byte_size(tensor.scalar_type, tensor.sizes);
  if (!expected) return text("has sizes {}: {}", list_text(tensor.sizes), expected.error().message);
  if (tensor.data.size() == *expected) return std::nullopt;
  return text("has {} bytes of data, expected {} for {} {}", tensor.data.size(), *expected,
              name_of(tensor.scalar_type), list_text(tensor.sizes));
}

}  // namespace etstream
