// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/crc32.h"

#include <zlib.h>

namespace etstream {

std::uint32_t crc32_of(std::span<const std::byte> bytes, std::uint32_t before) noexcept {
  // zlib takes a null pointer for the wish for the checksum of no bytes.
  if (bytes.empty()) return before;
  return static_cast<std::uint32_t>(
      crc32_z(before, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

std::uint32_t joined_crc32(std::uint32_t first, std::uint32_t second, std::uint64_t size) noexcept {
  static_assert(sizeof(z_off_t) == sizeof(size));
  return static_cast<std::uint32_t>(crc32_combine(first, second, static_cast<z_off_t>(size)));
}

}  // namespace etstream
