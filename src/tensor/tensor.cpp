// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/tensor.h"

#include <numeric>

#include "base/text.h"
#include "etstream/tensor_layout.h"
#include "tensor/dimensions.h"

namespace etstream {

std::vector<std::uint8_t> contiguous_dim_order(std::size_t dimensions) {
  std::vector<std::uint8_t> order(dimensions);
  std::iota(order.begin(), order.end(), std::uint8_t{0});
  return order;
}

std::string describe(const TensorLayout& layout) {
  return text("{} {}", name_of(layout.scalar_type), list_text(layout.sizes));
}

}  // namespace etstream
