// SPDX-License-Identifier: BSD-3-Clause
//
// The table in front of a fat container, little-endian: "NFAT", a version and a count of 4 bytes each, and
// for each payload its name in 32 bytes, filled up with zeros, and its offset behind the table and its size
// of 8 bytes each (backends/native/fat_pte.py of ExecuTorch's pull request 20702).
#pragma once

#include <cstdint>
#include <string_view>

namespace etstream::fat_table {

inline constexpr std::string_view kMagic = "NFAT";
inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::uint64_t kHeaderSize = 12;
inline constexpr std::uint64_t kEntrySize = 48;
inline constexpr std::uint64_t kNameSize = 32;
/// That a table may have, so that what is read of it into memory is bounded: 3 MiB.
inline constexpr std::uint64_t kMostPayloads = 65536;

[[nodiscard]] constexpr std::uint64_t size(std::uint64_t payloads) noexcept {
  return kHeaderSize + kEntrySize * payloads;
}

/// Whether a writer takes it: what is longer than its place, or is no printable ASCII, no reader finds.
[[nodiscard]] constexpr bool is_name(std::string_view name) noexcept {
  for (const char c : name) {
    if (c < ' ' || c > '~') return false;
  }
  return !name.empty() && name.size() <= kNameSize;
}

}  // namespace etstream::fat_table
