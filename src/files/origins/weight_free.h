// SPDX-License-Identifier: BSD-3-Clause
//
// Payloads that depend on no weight: masks, tables of positions.
#pragma once

#include <string>

#include "etstream/byte_source.h"
#include "etstream/result.h"
#include "etstream/tensor.h"

namespace etstream {

/// Describes the elements of `data` if no weights can be behind them: "no elements", "the number 0.125",
/// "numbers from 0 in steps of 1", "a mask of 0 and 1", "cosines of positions". Returns "" for others. Reads
/// the data up to 3 times. Error: that of reading.
[[nodiscard]] Result<std::string> describe_weight_free(const ByteSource& data, const TensorLayout& layout);

}  // namespace etstream
