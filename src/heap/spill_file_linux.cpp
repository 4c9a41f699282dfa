// SPDX-License-Identifier: BSD-3-Clause
#include "heap/spill_file.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace etstream::heap {
namespace {

int make_unnamed(const char* folder) {
  const int made = ::open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (made >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return made;
  // The file system has none without a name.
  std::array<char, 4096> path{};
  const int length = std::snprintf(path.data(), path.size(), "%s/.etstream-heap-XXXXXX", folder);
  if (length < 0 || static_cast<std::size_t>(length) >= path.size()) {
    errno = ENAMETOOLONG;
    return -1;
  }
  const int named = ::mkostemp(path.data(), O_CLOEXEC);
  if (named >= 0) ::unlink(path.data());
  return named;
}

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

int reserve_in(int descriptor, std::uint64_t offset, std::uint64_t size) {
  for (;;) {
    if (::fallocate(descriptor, FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset), static_cast<off_t>(size)) ==
        0) {
      return 0;
    }
    if (errno != EINTR) return errno;
  }
}

SpillError prepare(int descriptor, std::uint64_t size) {
  if (is_in_memory(descriptor)) return {EINVAL, "it is in memory itself (tmpfs)"};
  // Or the process would get a signal.
  ::rlimit largest{};
  if (::getrlimit(RLIMIT_FSIZE, &largest) == 0 && largest.rlim_cur < size) {
    return {EFBIG, "files may not be so large (ulimit -f)"};
  }
  write_in_place(descriptor);
  if (::ftruncate(descriptor, static_cast<off_t>(size)) != 0) return {errno, nullptr};
  const int failed = reserve_in(descriptor, 0, 1);
  if (failed == EOPNOTSUPP) return {failed, "its file system can't reserve room (fallocate)"};
  return {failed, nullptr};
}

}  // namespace

int move_up(int descriptor) noexcept {
  constexpr int kLowestDescriptor = 500;
  const int moved = ::fcntl(descriptor, F_DUPFD_CLOEXEC, kLowestDescriptor);
  if (moved < 0) return descriptor;
  ::close(descriptor);
  return moved;
}

SpillError SpillFile::open(const char* folder, std::uint64_t size) noexcept {
  const int made = make_unnamed(folder);
  if (made < 0) return {errno, nullptr};
  const SpillError failed = prepare(made, size);
  struct stat found {};
  if (failed || ::fstat(made, &found) != 0) {
    ::close(made);
    return failed;
  }
  descriptor_ = move_up(made);
  device_ = found.st_dev;
  inode_ = found.st_ino;
  return {};
}

void SpillFile::close() noexcept {
  if (is_intact()) ::close(descriptor_);
  descriptor_ = -1;
}

bool SpillFile::is_intact() const noexcept {
  struct stat found {};
  return is_open() && ::fstat(descriptor_, &found) == 0 && found.st_dev == device_ && found.st_ino == inode_;
}

int SpillFile::reserve(std::uint64_t offset, std::uint64_t size) const noexcept {
  return reserve_in(descriptor_, offset, size);
}

int SpillFile::map(std::byte* address, std::uint64_t offset, std::uint64_t size, bool shared) const noexcept {
  const int flags = MAP_FIXED | (shared ? MAP_SHARED : MAP_PRIVATE | MAP_NORESERVE);
  void* const mapped =
      ::mmap(address, size, PROT_READ | PROT_WRITE, flags, descriptor_, static_cast<off_t>(offset));
  return mapped == MAP_FAILED ? errno : 0;
}

void SpillFile::empty(std::byte* address, std::uint64_t /*offset*/, std::uint64_t size) const noexcept {
  if (::madvise(address, size, MADV_REMOVE) == 0) return;
  // It is locked in memory (mlock).
  ::munlock(address, size);
  if (::madvise(address, size, MADV_REMOVE) != 0) std::memset(address, 0, size);
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
