// SPDX-License-Identifier: BSD-3-Clause
//
// Sizes for messages about the limit that would suffice.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/text.h"

namespace etstream {

/// Returns the least whole number of KiB or MiB that `bytes` fit in, as limits are given: "26K", "513M".
inline std::string limit_for(std::uint64_t bytes) {
  const bool is_small = bytes <= std::uint64_t{1} << 20;
  const std::uint64_t unit = std::uint64_t{1} << (is_small ? 10 : 20);
  return text("{}{}", bytes / unit + (bytes % unit == 0 ? 0 : 1), is_small ? 'K' : 'M');
}

}  // namespace etstream
