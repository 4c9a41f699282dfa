// SPDX-License-Identifier: BSD-3-Clause
//
// FileIdentity, from what the system says of a file.
#pragma once

#include <sys/stat.h>

#include <cstdint>

#include "etstream/byte_source.h"

namespace etstream {

[[nodiscard]] inline FileIdentity file_identity(const struct stat& found) noexcept {
  return {static_cast<std::uint64_t>(found.st_dev), static_cast<std::uint64_t>(found.st_ino)};
}

}  // namespace etstream
