// SPDX-License-Identifier: BSD-3-Clause
#include "memory/heap/spill_file.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/vfs.h>

#include <cerrno>

namespace etstream::heap {
namespace {

bool is_in_memory(int descriptor) {
  struct statfs found {};
  return ::fstatfs(descriptor, &found) == 0 && (found.f_type == TMPFS_MAGIC || found.f_type == RAMFS_MAGIC);
}

/// Lets a file system that copies on write change this file in place.
void write_in_place(int descriptor) {
  int flags = 0;
  if (::ioctl(descriptor, FS_IOC_GETFLAGS, &flags) != 0) return;
  flags |= FS_NOCOW_FL;
  // Other file systems refuse the flag, and need none.
  static_cast<void>(::ioctl(descriptor, FS_IOC_SETFLAGS, &flags));
}

/// Calls fallocate(). Returns 0, or errno's value.
int allocate(int descriptor, int mode, FilePart part) {
  while (::fallocate(descriptor, FALLOC_FL_KEEP_SIZE | mode, part.offset, static_cast<off_t>(part.size)) !=
         0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

}  // namespace

namespace spill_system {

const int kLowestDescriptor = 500;

SpillError prepare_empty(int descriptor) noexcept {
  if (is_in_memory(descriptor)) return {EINVAL, "it is in memory itself (tmpfs)"};
  write_in_place(descriptor);
  return {};
}

SpillError prepare_sized(int descriptor) noexcept {
  const int failed = allocate(descriptor, 0, {.size = 1});
  if (failed == EOPNOTSUPP) return {failed, "its file system can't reserve room (fallocate)"};
  return {failed, nullptr};
}

}  // namespace spill_system

int SpillFile::reserve(FilePart part) const noexcept {
  constexpr std::size_t kMostWritten = 4 << 20;
  const int failed = allocate(descriptor_, 0, part);
  // Zeros that are written at once lie in large groups of pages. Those cost a fifth of pages that are read
  // one by one when they are touched. Larger parts may never be used whole.
  if (failed == 0 && part.size <= kMostWritten) static_cast<void>(write_zeros(part));
  return failed;
}

bool SpillFile::punch(FilePart part) const noexcept {
  return allocate(descriptor_, FALLOC_FL_PUNCH_HOLE, part) == 0;
}

void SpillFile::begin_writing(FilePart part) const noexcept {
  const auto size = static_cast<off_t>(part.size);
  static_cast<void>(::sync_file_range(descriptor_, part.offset, size, SYNC_FILE_RANGE_WRITE));
  ::madvise(part.address, part.size, MADV_DONTNEED);
}

void SpillFile::end_writing(FilePart part) const noexcept {
  constexpr unsigned kAll = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
  const auto size = static_cast<off_t>(part.size);
  static_cast<void>(::sync_file_range(descriptor_, part.offset, size, kAll));
  static_cast<void>(::posix_fadvise(descriptor_, part.offset, size, POSIX_FADV_DONTNEED));
}

}  // namespace etstream::heap
