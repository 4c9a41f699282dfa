// SPDX-License-Identifier: BSD-3-Clause
#include <fstream>
#include <string>

#include "heap/process_memory.h"

namespace etstream::heap {

std::optional<ProcessMemory> memory_of(std::int32_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  ProcessMemory found;
  std::string name;
  std::uint64_t kibibytes = 0;
  // VmRSS comes first.
  while (status >> name) {
    if (name == "VmRSS:" && status >> kibibytes) found.resident = kibibytes << 10;
    if (name == "RssAnon:" && status >> kibibytes) {
      found.anonymous = kibibytes << 10;
      return found;
    }
  }
  return std::nullopt;
}

}  // namespace etstream::heap
