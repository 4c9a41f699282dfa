// SPDX-License-Identifier: BSD-3-Clause
//
// The uses that XNNPACK's graphs make of the named data that they ask for.
#pragma once

#include <string>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/result.h"
#include "formats/pte/backends/payload_constant.h"

namespace etstream {

struct XnnpackUses {
  bool has_header = false;  // or the constants are in the graph, and none is listed
  /// In the payload's order; behind them, scales that lie in the graph.
  std::vector<PayloadConstant> constants;
};

/// Reads the constants that `payload` asks for or holds, if it has a header: older ones have constants in the
/// graph. `name` is what messages call it. Memory: that of the keys, 300 bytes a constant. Time: in
/// proportion to the graph's size. Errors: those of open_xnnpack(); kTooLarge
/// for a key over 1 MiB.
[[nodiscard]] Result<XnnpackUses> read_xnnpack_uses(const ByteSource& payload, const std::string& name);

}  // namespace etstream
