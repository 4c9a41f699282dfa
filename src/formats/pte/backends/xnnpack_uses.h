// SPDX-License-Identifier: BSD-3-Clause
//
// The uses that XNNPACK's graphs make of the named data that they ask for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/result.h"
#include "etstream/tensor_layout.h"

namespace etstream {

/// A tensor of integers, each of which stands for its product with a scale.
struct ScaledIntegers {
  std::vector<std::uint32_t> sizes;  // by dimension
  std::uint32_t channel_dim = 0;     // the dimension whose indices have scales of their own
  std::uint32_t group = 0;           // how many integers of a channel share a scale; 0 for all of them
  bool has_channels = false;         // or one scale is for all
};

/// A constant that a graph asks for by a key, or that lies in the payload.
struct XnnpackConstant {
  std::string key;             // empty for one in the payload
  std::uint64_t position = 0;  // where the key's characters are in the payload, or the constant, in bytes
  std::uint64_t size = 0;      // in bytes
  std::string use = {};        // "filter of XNNFullyConnected 3"; empty where no node reads it
  /// The layout of its elements; nothing if the graph does not say it, or says one that does not fit `size`.
  std::optional<TensorLayout> layout = {};
  bool is_of_nibbles = false;  // two elements a byte, the first in the low half; `layout` is of the bytes
  std::optional<ScaledIntegers> integers = {};  // that it holds, or whose scales it holds
  std::optional<std::size_t> scales = {};       // the place of their scales among the constants
  std::optional<std::size_t> bias_of = {};      // the place of the filter with which a node adds it
  std::optional<float> input_scale = {};        // of that node's input, if one is for all of it
};

/// Constants that a node has XNNPACK pack. With a weight cache, ExecuTorch 1.5.1 looks the packed weights up
/// by the key of the filter, followed by that of the bias if the kernel packs it too (look_up() in
/// XNNWeightsCache.cpp). Kernels for inputs that are quantized dynamically don't (fully-connected-nc.c and
/// others in XNNPACK's src/operators).
struct XnnpackPacking {
  std::string filter;  // its key
  std::string bias;    // its key; empty for a node without a bias, or whose bias has no key
  std::string node;    // "XNNFullyConnected 3"
};

struct XnnpackUses {
  std::vector<XnnpackConstant>
      constants;                         // in the payload's order; behind them, scales that lie in the graph
  std::vector<XnnpackPacking> packings;  // in the order of the nodes
};

/// Reads the constants that `payload` asks for or holds, if it has a header: older ones have constants in the
/// graph. `name` is what messages call it. Memory: that of the keys, 300 bytes a constant, and 100 bytes a
/// node that packs some. Time: in proportion to the graph's size. Errors: those of open_xnnpack(); kTooLarge
/// for a key over 1 MiB.
[[nodiscard]] Result<XnnpackUses> read_xnnpack_uses(const ByteSource& payload, const std::string& name);

}  // namespace etstream
