// SPDX-License-Identifier: BSD-3-Clause
//
// The table in front of a fat container, little-endian: a header, and an entry for each payload
// (backends/native/fat_pte.py of ExecuTorch's pull request 20702).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace etstream::fat_table {

inline constexpr std::string_view kMagic = "NFAT";
inline constexpr std::uint32_t kVersion = 1;
/// The most payloads in a table. It bounds the part of the table that is read into memory to 3 MiB.
inline constexpr std::uint64_t kMostPayloads = 65536;

struct Header {
  std::array<char, 4> magic = {'N', 'F', 'A', 'T'};
  std::uint32_t version = kVersion;
  std::uint32_t payloads = 0;
};
struct Entry {
  std::array<char, 32> name = {};  // filled up with zeros
  std::uint64_t offset = 0;        // behind the table
  std::uint64_t size = 0;
};
static_assert(sizeof(Header) == 12 && sizeof(Entry) == 48);

inline constexpr std::uint64_t kNameSize = sizeof(Entry::name);

/// Returns the size in bytes of a table with so many entries.
[[nodiscard]] constexpr std::uint64_t size(std::uint64_t payloads) noexcept {
  return sizeof(Header) + sizeof(Entry) * payloads;
}

/// Returns whether a payload may have this name. Readers do not find a name that is longer than its field or
/// is not printable ASCII.
[[nodiscard]] constexpr bool is_name(std::string_view name) noexcept {
  for (const char c : name) {
    if (c < ' ' || c > '~') return false;
  }
  return !name.empty() && name.size() <= kNameSize;
}

}  // namespace etstream::fat_table
