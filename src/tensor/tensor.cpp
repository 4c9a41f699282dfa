// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/tensor.h"

#include <numeric>

namespace etstream {

std::vector<std::uint8_t> contiguous_dim_order(std::size_t dimensions) {
  std::vector<std::uint8_t> order(dimensions);
  std::iota(order.begin(), order.end(), std::uint8_t{0});
  return order;
}

}  // namespace etstream
