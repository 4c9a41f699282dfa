// SPDX-License-Identifier: BSD-3-Clause
#include <system_error>

#include "cli/other_command.h"

namespace etstream::cli {

std::filesystem::path own_program() {
  std::error_code failed;
  return std::filesystem::read_symlink("/proc/self/exe", failed);
}

}  // namespace etstream::cli
