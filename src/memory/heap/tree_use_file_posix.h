// SPDX-License-Identifier: BSD-3-Clause
//
// The file in memory by which processes share a TreeUse.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "memory/heap/environment.h"
#include "memory/heap/statistics.h"

namespace etstream::heap {

/// Opens the file that the environment names. Returns -1 if there is none, or if it has another size: another
/// version of etstream made it.
[[nodiscard]] inline int open_tree_use() noexcept {
  const char* const path = std::getenv(kReportVariable);
  const int file = path != nullptr ? ::open(path, O_RDWR | O_CLOEXEC) : -1;
  if (file < 0) return -1;
  struct ::stat found {};
  if (::fstat(file, &found) == 0 && found.st_size == sizeof(TreeUse)) return file;
  ::close(file);
  return -1;
}

}  // namespace etstream::heap
