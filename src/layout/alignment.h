// SPDX-License-Identifier: BSD-3-Clause
//
// What a caller may ask for as an alignment.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/checked.h"
#include "base/text.h"
#include "etstream/result.h"

namespace etstream {

/// Error: kInvalidArgument unless `alignment` is a power of two up to `most`. `what` is how messages begin:
/// "segment alignment".
[[nodiscard]] inline Result<void> check_alignment(std::string_view what, std::uint32_t alignment,
                                                  std::uint32_t most) {
  if (is_power_of_two(alignment) && alignment <= most) return {};
  return make_error(ErrorCode::kInvalidArgument, "{} {}: expected a power of two from 1 to {}", what,
                    alignment, most);
}

}  // namespace etstream
