// SPDX-License-Identifier: BSD-3-Clause
//
// Which of some keys come in a source's bytes.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "etstream/byte_source.h"
#include "etstream/result.h"

namespace etstream {

/// Bytes times keys, beyond which nobody waits for find_keys().
inline constexpr std::uint64_t kMostSearched = std::uint64_t{1} << 38;

/// Adds to `found` those of `keys` that `source` holds anywhere. An empty key is in any source. Memory: 1
/// MiB, and the longest key. Time: in proportion to the source's size times the number of keys. Errors: those
/// of reading.
[[nodiscard]] Result<void> find_keys(const ByteSource& source, const std::set<std::string>& keys,
                                     std::set<std::string>& found);

}  // namespace etstream
