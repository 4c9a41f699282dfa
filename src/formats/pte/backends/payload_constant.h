// SPDX-License-Identifier: BSD-3-Clause
//
// The constants of a delegate's graph.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "etstream/dim_order.h"
#include "etstream/scalar_type.h"
#include "etstream/tensor_layout.h"
#include "formats/tensor/dimensions.h"

namespace etstream {

/// A tensor of integers, each of which stands for its product with a scale.
struct ScaledIntegers {
  std::vector<std::uint32_t> sizes;  // by dimension
  std::uint32_t channel_dim = 0;     // the dimension whose indices have scales of their own
  std::uint32_t group = 0;           // how many integers of a channel share a scale; 0 for all of them
  bool has_channels = false;         // or one scale is for all
};

/// A node that adds a bias to the product with a filter.
struct BiasUse {
  std::size_t filter = 0;                 // its place
  std::optional<float> input_scale = {};  // of the node's input, if one is for all of it

  bool operator==(const BiasUse&) const = default;
};

/// A constant that a graph asks for by a key, or that lies in the payload.
struct PayloadConstant {
  std::string key;             // empty for one in the payload
  std::uint64_t position = 0;  // where the key's characters are in the payload, or the constant, in bytes
  std::uint64_t size = 0;      // in bytes
  std::string use = {};        // "filter of XNNFullyConnected 3"; empty where no node reads it
  /// The layout of its elements; nothing if the graph does not say it, or says one that does not fit `size`.
  std::optional<TensorLayout> layout = {};
  bool is_calibrated = false;  // the scale of a value that is computed
  bool is_of_nibbles = false;  // two elements a byte, the first in the low half; `layout` is of the bytes
  std::optional<ScaledIntegers> integers = {};  // that it holds, or whose scales it holds
  std::optional<std::size_t> scales = {};       // the place of their scales among the constants
  std::size_t uses = 0;                         // how often nodes read it
  std::vector<BiasUse> bias_of = {};            // those of the uses that are as a bias
};

/// Returns the layout of contiguous data of these sizes, if it takes `size` bytes.
[[nodiscard]] inline std::optional<TensorLayout> layout_of_size(ScalarType type,
                                                                const std::vector<std::uint32_t>& sizes,
                                                                std::uint64_t size) {
  auto out = contiguous_layout(type, std::vector<std::uint64_t>(sizes.begin(), sizes.end()));
  if (!out) return std::nullopt;
  const auto bytes = byte_size(type, out->sizes);
  if (!bytes || *bytes != size) return std::nullopt;
  return out;
}

}  // namespace etstream
