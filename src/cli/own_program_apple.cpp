// SPDX-License-Identifier: BSD-3-Clause
#include <mach-o/dyld.h>

#include <array>
#include <cstdint>
#include <system_error>

#include "cli/other_command.h"

namespace etstream::cli {

std::filesystem::path own_program() {
  std::array<char, 4096> path{};
  auto size = static_cast<std::uint32_t>(path.size());
  if (::_NSGetExecutablePath(path.data(), &size) != 0) return {};
  std::error_code failed;
  return std::filesystem::canonical(path.data(), failed);
}

}  // namespace etstream::cli
