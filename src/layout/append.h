// SPDX-License-Identifier: BSD-3-Clause
//
// Extents one after another at the end of a plan.
#pragma once

#include <cstdint>
#include <string_view>

#include "etstream/file_plan.h"
#include "etstream/result.h"

namespace etstream {

/// Appends `source`, unless it is empty. `alignment` is what the format asks for there; the end of the plan
/// has it already. Error: kTooLarge over 2^64 - 1 bytes.
[[nodiscard]] Result<void> append(FilePlan& plan, std::uint32_t alignment, std::string_view label,
                                  ByteSource source);

/// Brings the end to a multiple of `alignment`, a power of two, with zeros.
[[nodiscard]] Result<void> pad(FilePlan& plan, std::uint64_t alignment);

}  // namespace etstream
