// SPDX-License-Identifier: BSD-3-Clause
//
// Sizes as people write them, on the command line and in Python.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

#include "etstream/result.h"

namespace etstream {

/// The sizes that an option takes, in bytes.
struct SizeBounds {
  std::uint64_t least = 0;
  std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
};

/// Returns the bytes of a size: a whole number, and behind it, after spaces or none, a unit or none. Units
/// are powers of 1024, in large or small letters: "4096", "4096B", "4K", "4KB", "4 KiB", up to E. Error:
/// kInvalidArgument for what is no such size or out of bounds, with what may be meant.
[[nodiscard]] Result<std::uint64_t> parse_size(std::string_view words, SizeBounds bounds = {});

}  // namespace etstream
