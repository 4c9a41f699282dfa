// SPDX-License-Identifier: BSD-3-Clause
//
// Batch norms that become part of the weights before or behind them, in float32, with the operations in the
// order of torch 2.13 and ExecuTorch 1.5.1, so that the bits are theirs.
#pragma once

#include <span>
#include <vector>

namespace etstream {

/// A batch norm's parameters, one of each for each channel.
struct BatchNorm {
  std::vector<float> mean;
  std::vector<float> variance;
  std::vector<float> weight;
  std::vector<float> bias;
  float epsilon = 0;
};

/// Returns the factors that a batch norm gives to the channels of the weights before it:
/// fuse_conv_bn_weights() in torch/nn/utils/fusion.py.
[[nodiscard]] std::vector<float> folded_factors(const BatchNorm& norm);
/// Returns the bias of the weights before it, which had the bias `own`; or none, if that is empty. Linear
/// weights have the factor as one: fuse_linear_bn_weights().
[[nodiscard]] std::vector<float> folded_bias(const BatchNorm& norm, std::span<const float> own,
                                             bool is_linear);

/// Returns the weights of a batch norm that has become a convolution of its own: DecomposeBatchNorm in
/// backends/xnnpack/_passes, which computes in float64.
[[nodiscard]] std::vector<float> weights_of(const BatchNorm& norm);
/// Returns the bias of that convolution.
[[nodiscard]] std::vector<float> bias_of(const BatchNorm& norm);

}  // namespace etstream
