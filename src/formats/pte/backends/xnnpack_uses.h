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

/// A constant that a graph asks for by a key.
struct XnnpackConstant {
  std::string key;
  std::uint64_t key_position = 0;  // where its characters are in the payload, in bytes
  std::uint64_t size = 0;          // in bytes
  std::string use = {};            // "filter of XNNFullyConnected 3"; empty where no node reads it
  /// The layout of its elements; nothing if the graph does not say it, or says one that does not fit `size`.
  std::optional<TensorLayout> layout = {};
  bool is_of_nibbles = false;  // two elements a byte, the first in the low half; `layout` is of the bytes
};

/// Reads the constants that `payload` asks for, in its order. `name` is what messages call it. Memory: that
/// of the keys, and 200 bytes a constant. Time: in proportion to the graph's size. Errors: those of
/// read_xnnpack_constants().
[[nodiscard]] Result<std::vector<XnnpackConstant>> read_xnnpack_uses(const ByteSource& payload,
                                                                     const std::string& name);

}  // namespace etstream
