// SPDX-License-Identifier: BSD-3-Clause
//
// Extents one after another at the end of a layout.
#pragma once

#include <cstdint>
#include <string_view>

#include "etstream/layout.h"
#include "etstream/result.h"

namespace etstream {

/// Puts `source`, unless it is empty, at the end. `alignment` is what the format asks for there, which the
/// end has. Error: kTooLarge over 2^64 - 1 bytes.
[[nodiscard]] Result<void> append(Layout& layout, std::uint32_t alignment, std::string_view label,
                                  ByteSource source);

/// Brings the end to a multiple of `alignment`, a power of two, with zeros.
[[nodiscard]] Result<void> pad(Layout& layout, std::uint64_t alignment);

}  // namespace etstream
