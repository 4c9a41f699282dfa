// SPDX-License-Identifier: BSD-3-Clause
//
// What a process has in memory, as /proc tells it.
#pragma once

#include <cstdint>
#include <optional>

namespace etstream::heap {

/// In bytes.
struct ProcessMemory {
  std::uint64_t anonymous = 0;  // what no file backs
  std::uint64_t resident = 0;   // that, and files' pages
};

/// Nothing of a process that is gone or another user's.
[[nodiscard]] std::optional<ProcessMemory> memory_of(std::int32_t process);

}  // namespace etstream::heap
