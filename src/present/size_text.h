// SPDX-License-Identifier: BSD-3-Clause
//
// Sizes as people write them, on the command line and in Python.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

#include "etstream/result.h"

namespace etstream {

/// The bounds of the sizes that an option takes, in bytes.
struct SizeBounds {
  std::uint64_t least = 0;
  std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
};

/// Returns the bytes of a size: a whole number and optionally a unit, with or without spaces between them.
/// Units are powers of 1024, in large or small letters: "4096", "4096B", "4K", "4KB", "4 KiB", up to E.
/// Error: kInvalidArgument for a size that is invalid or out of bounds, with a suggestion.
[[nodiscard]] Result<std::uint64_t> parse_size(std::string_view words, SizeBounds bounds = {});

}  // namespace etstream
