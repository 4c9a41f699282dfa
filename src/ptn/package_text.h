// SPDX-License-Identifier: BSD-3-Clause
//
// The two texts of a package, as Python's json spells them: the header of its constants, and its aliases.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "etstream/checkpoint.h"
#include "etstream/result.h"

namespace etstream {

struct StoredTensor {
  const CheckpointTensor* tensor = nullptr;  // with a layout, its name in UTF-8
  std::string_view dtype;                    // as safetensors names it
};

/// A key, and the constant whose bytes it has.
struct Alias {
  std::string key;
  std::string owner;
};

/// Of tensors in this order, with its length before it, filled up with spaces to a multiple of `alignment`,
/// and of 8. Error: kTooLarge over 100,000,000 bytes.
[[nodiscard]] Result<std::vector<std::byte>> constants_header(const std::vector<StoredTensor>& tensors,
                                                              std::uint32_t alignment);

/// `aliases` are by key.
[[nodiscard]] std::string aliases_text(const std::vector<Alias>& aliases);

}  // namespace etstream
