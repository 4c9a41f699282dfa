// SPDX-License-Identifier: BSD-3-Clause
#include "heap/spill_file.h"

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

/// Has it written in place, on file systems that otherwise write to other blocks (copy on write).
void write_in_place(int descriptor) {
  int flags = 0;
  if (::ioctl(descriptor, FS_IOC_GETFLAGS, &flags) != 0) return;
  flags |= FS_NOCOW_FL;
  // Others have no such flag, and need none.
  static_cast<void>(::ioctl(descriptor, FS_IOC_SETFLAGS, &flags));
}

/// 0, or errno's value.
int call_on_part(int descriptor, int mode, std::uint64_t offset, std::uint64_t size) {
  while (::fallocate(descriptor, mode, static_cast<off_t>(offset), static_cast<off_t>(size)) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

int reserve_in(int descriptor, std::uint64_t offset, std::uint64_t size) {
  return call_on_part(descriptor, FALLOC_FL_KEEP_SIZE, offset, size);
}

}  // namespace

namespace spill_system {

const int kLowestDescriptor = 500;

int open_nameless(const char* folder) noexcept {
  return ::open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

SpillError prepare_empty(int descriptor) noexcept {
  if (is_in_memory(descriptor)) return {EINVAL, "it is in memory itself (tmpfs)"};
  write_in_place(descriptor);
  return {};
}

SpillError prepare_sized(int descriptor) noexcept {
  const int failed = reserve_in(descriptor, 0, 1);
  if (failed == EOPNOTSUPP) return {failed, "its file system can't reserve room (fallocate)"};
  return {failed, nullptr};
}

}  // namespace spill_system

int SpillFile::reserve(std::uint64_t offset, std::uint64_t size) const noexcept {
  constexpr std::uint64_t kMostWritten = 4 << 20;
  const int failed = reserve_in(descriptor_, offset, size);
  // What is written at once is in memory in large groups of pages, which cost a fifth of pages that are read
  // one by one when they are touched. Larger parts may never be used whole.
  if (failed == 0 && size <= kMostWritten) static_cast<void>(write_zeros(offset, size));
  return failed;
}

int SpillFile::map(std::byte* address, std::uint64_t offset, std::uint64_t size, bool shared) const noexcept {
  const int flags = MAP_FIXED | (shared ? MAP_SHARED : MAP_PRIVATE | MAP_NORESERVE);
  void* const mapped =
      ::mmap(address, size, PROT_READ | PROT_WRITE, flags, descriptor_, static_cast<off_t>(offset));
  return mapped == MAP_FAILED ? errno : 0;
}

bool SpillFile::punch(std::uint64_t offset, std::uint64_t size) const noexcept {
  return call_on_part(descriptor_, FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE, offset, size) == 0;
}

void SpillFile::begin_writing(std::byte* address, std::uint64_t offset, std::uint64_t size) const noexcept {
  static_cast<void>(::sync_file_range(descriptor_, static_cast<off_t>(offset), static_cast<off_t>(size),
                                      SYNC_FILE_RANGE_WRITE));
  ::madvise(address, size, MADV_DONTNEED);
}

void SpillFile::end_writing(std::byte* /*address*/, std::uint64_t offset, std::uint64_t size) const noexcept {
  constexpr unsigned kAll = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
  static_cast<void>(
      ::sync_file_range(descriptor_, static_cast<off_t>(offset), static_cast<off_t>(size), kAll));
  static_cast<void>(::posix_fadvise(descriptor_, static_cast<off_t>(offset), static_cast<off_t>(size),
                                    POSIX_FADV_DONTNEED));
}

}  // namespace etstream::heap
