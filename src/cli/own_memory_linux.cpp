// SPDX-License-Identifier: BSD-3-Clause
#include <unistd.h>

#include <cinttypes>
#include <cstdio>

#include "cli/own_memory.h"

namespace etstream::cli {

std::uint64_t own_anonymous_memory() noexcept {
  std::FILE* const file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr) return 0;
  std::uint64_t resident = 0;
  std::uint64_t of_files = 0;
  const bool is_told = std::fscanf(file, "%*u %" SCNu64 " %" SCNu64, &resident, &of_files) == 2;
  std::fclose(file);
  if (!is_told || of_files > resident) return 0;
  return (resident - of_files) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace etstream::cli
