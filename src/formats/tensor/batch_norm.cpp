// SPDX-License-Identifier: BSD-3-Clause
#include "formats/tensor/batch_norm.h"

#include <cmath>
#include <cstddef>

namespace etstream {
namespace {

/// Calls `compute(channel)` for each channel and returns the results.
template <class Compute>
std::vector<float> for_channels(const BatchNorm& norm, Compute compute) {
  std::vector<float> out(norm.mean.size());
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = compute(i);
  return out;
}

float inverse_deviation(const BatchNorm& norm, std::size_t i) {
  return 1.0F / std::sqrt(norm.variance[i] + norm.epsilon);
}

double deviation(const BatchNorm& norm, std::size_t i) {
  return std::sqrt(double{norm.variance[i]} + double{norm.epsilon});
}

}  // namespace

std::vector<float> folded_factors(const BatchNorm& norm) {
  return for_channels(norm, [&](std::size_t i) { return norm.weight[i] * inverse_deviation(norm, i); });
}

std::vector<float> folded_bias(const BatchNorm& norm, std::span<const float> own, bool is_linear) {
  return for_channels(norm, [&](std::size_t i) {
    const float centered = (own.empty() ? 0.0F : own[i]) - norm.mean[i];
    const float inverse = inverse_deviation(norm, i);
    if (is_linear) return centered * (norm.weight[i] * inverse) + norm.bias[i];
    return centered * inverse * norm.weight[i] + norm.bias[i];
  });
}

std::vector<float> weights_of(const BatchNorm& norm) {
  return for_channels(
      norm, [&](std::size_t i) { return static_cast<float>(double{norm.weight[i]} / deviation(norm, i)); });
}

std::vector<float> bias_of(const BatchNorm& norm) {
  return for_channels(norm, [&](std::size_t i) {
    return static_cast<float>(-double{norm.mean[i]} * double{norm.weight[i]} / deviation(norm, i) +
                              double{norm.bias[i]});
  });
}

}  // namespace etstream
