// SPDX-License-Identifier: BSD-3-Clause
//
// The memory that the kernel lets the control group of this process have, as containers and CI runners set
// it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace etstream {

struct CgroupMemory {
  std::uint64_t limit = 0;  // in bytes, the lowest of the group and those around it; 0 if there is none
  std::uint64_t kills = 0;  // processes of the group that were killed because a limit was reached, so far
};

/// Reads the figures of this process's group, of either version of control groups; nothing if there are none.
/// `root` is the folder with proc and sys.
[[nodiscard]] std::optional<CgroupMemory> cgroup_memory(const std::string& root = "/");

}  // namespace etstream
