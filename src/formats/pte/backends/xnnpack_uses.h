// SPDX-License-Identifier: BSD-3-Clause
//
// The uses that XNNPACK's graphs make of the named data that they ask for.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/result.h"
#include "formats/pte/backends/payload_constant.h"

namespace etstream {

/// Constants that a node has XNNPACK pack. With a weight cache, ExecuTorch 1.5.1 looks the packed weights up
/// by the key of the filter, followed by that of the bias if the kernel packs it too (look_up() in
/// XNNWeightsCache.cpp). Kernels for inputs that are quantized dynamically don't (fully-connected-nc.c and
/// others in XNNPACK's src/operators).
struct XnnpackPacking {
  std::size_t filter = 0;           // its place in the constants; it has a key
  std::optional<std::size_t> bias;  // its place; nothing for a node without a bias, or whose bias has no key
  std::string node;                 // "XNNFullyConnected 3"
};

struct XnnpackUses {
  bool has_header = false;  // or the constants are in the graph, and none is listed
  std::vector<PayloadConstant>
      constants;                         // in the payload's order; behind them, scales that lie in the graph
  std::vector<XnnpackPacking> packings;  // in the order of the nodes
};

/// Reads the constants that `payload` asks for or holds, if it has a header: older ones have constants in the
/// graph. `name` is what messages call it. Memory: that of the keys, 300 bytes a constant, and 100 bytes a
/// node that packs some. Time: in proportion to the graph's size. Errors: those of open_xnnpack(); kTooLarge
/// for a key over 1 MiB.
[[nodiscard]] Result<XnnpackUses> read_xnnpack_uses(const ByteSource& payload, const std::string& name);

}  // namespace etstream
