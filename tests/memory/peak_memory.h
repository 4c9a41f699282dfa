// SPDX-License-Identifier: BSD-3-Clause
//
// The peak memory of a command.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

struct PeakMemory {
  int exit_code = -1;           // -1 if a signal ended the command
  std::uint64_t anonymous = 0;  // bytes: the high-water mark of RssAnon, read every 200 microseconds
  std::uint64_t resident = 0;   // bytes: the kernel's own exact mark, which counts program text too
};

/// Runs `command` (its path and arguments, standard output to `output` if given), with its address space
/// limited to `address_space` bytes if given.
PeakMemory measure(const std::vector<std::string>& command, std::optional<std::uint64_t> address_space,
                   const std::string& output = "/dev/null");
