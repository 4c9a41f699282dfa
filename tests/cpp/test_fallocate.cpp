// SPDX-License-Identifier: BSD-3-Clause
#include "test_fallocate.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace testing = etstream::testing;

/// Takes the place of the C library's.
extern "C" int fallocate(int file, int mode, off_t offset, off_t size) {
  testing::reserved += std::to_string(offset) + " + " + std::to_string(size) + "; ";
  const bool is_hole = (mode & FALLOC_FL_PUNCH_HOLE) != 0;
  errno = is_hole ? testing::no_holes_error : testing::reserve_error;
  return errno != 0 ? -1 : static_cast<int>(::syscall(SYS_fallocate, file, mode, offset, size));
}
