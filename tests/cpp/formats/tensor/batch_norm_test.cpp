// SPDX-License-Identifier: BSD-3-Clause
//
// The bits were computed with numpy, in the order of torch's operations; each order gives others.
#include "formats/tensor/batch_norm.h"

#include <doctest/doctest.h>

#include <bit>
#include <cstdint>
#include <vector>

namespace etstream::batch_norm_test {
namespace {

using Bits = std::vector<std::uint32_t>;

BatchNorm norm() {
  return {.mean = {-0.25F, 0.0625F, 2.0F},
          .variance = {2.25F, 6.625F, 2.125F},
          .weight = {3.5625F, -3.75F, -2.875F},
          .bias = {2.5625F, 3.5625F, -2.0625F},
          .epsilon = 1e-5F};
}

Bits bits_of(const std::vector<float>& floats) {
  Bits out;
  for (const float each : floats) out.push_back(std::bit_cast<std::uint32_t>(each));
  return out;
}

TEST_CASE("weights before a batch norm get its factors, and the bias what is left, to the last bit") {
  CHECK(bits_of(folded_factors(norm())) == Bits{0x4017ffea, 0xbfba7c9b, 0xbffc7200});
  const std::vector<float> own = {-1.5625F, 2.9375F, -0.625F};
  CHECK(bits_of(folded_bias(norm(), own, false)) == Bits{0xbf0dff90, 0xbf204c80, 0x404755a2});
  CHECK(bits_of(folded_bias(norm(), own, true)) == Bits{0xbf0dff8c, 0xbf204c78, 0x404755a0});
  CHECK(bits_of(folded_bias(norm(), {}, false)) == Bits{0x4049fffa, 0x4069d3e5, 0x3ff0e400});
}

TEST_CASE("a batch norm as a convolution is computed in float64") {
  CHECK(bits_of(weights_of(norm())) == Bits{0x4017ffea, 0xbfba7c9b, 0xbffc7201});
  CHECK(bits_of(bias_of(norm())) == Bits{0x4049fffa, 0x4069d3e5, 0x3ff0e401});
}

}  // namespace
}  // namespace etstream::batch_norm_test
