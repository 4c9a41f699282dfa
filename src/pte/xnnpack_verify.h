// SPDX-License-Identifier: BSD-3-Clause
//
// Whether XNNPACK's backend can load what a delegate has for it, and what its calls have to bring.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/findings.h"
#include "etstream/result.h"

namespace etstream {

/// A tensor that a call brings.
struct XnnpackArgument {
  std::uint32_t number = 0;  // among the call's arguments
  std::uint32_t width = 0;   // the bytes of an element; 0 where they can't be told
};

/// Adds to `findings` what ExecuTorch 1.5.1 would refuse of `payload`, or end on: tensors whose constants or
/// scales are not all there, nodes of tensors that there are not. Constants themselves are not read. Gives
/// what calls bring, as far as it is sound. `name` is what messages call it. Memory: 48 bytes a tensor. Time:
/// in proportion to the graph's size. Errors: those of reading but kCorrupt, which is a finding.
[[nodiscard]] Result<std::vector<XnnpackArgument>> verify_xnnpack(const ByteSource& payload,
                                                                  const std::string& name,
                                                                  Findings& findings);

}  // namespace etstream
