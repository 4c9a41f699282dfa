// SPDX-License-Identifier: BSD-3-Clause
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "memory/heap/spill_file.h"

namespace etstream::heap {
namespace {

/// Opens a file without a name. If the system can't, the file has a name for a moment.
int make_unnamed(const char* folder) {
#ifdef O_TMPFILE
  const int made = ::open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (made >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return made;
#endif
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

SpillError prepare(int descriptor, std::uint64_t size) {
  if (const SpillError unfit = spill_system::prepare_empty(descriptor)) return unfit;
  // Otherwise ftruncate() would raise SIGXFSZ.
  ::rlimit largest{};
  if (::getrlimit(RLIMIT_FSIZE, &largest) == 0 && largest.rlim_cur < size) {
    return {EFBIG, "files may not be so large", {"ulimit -f", largest.rlim_cur, size}};
  }
  if (::ftruncate(descriptor, static_cast<off_t>(size)) != 0) return {errno, nullptr};
  return spill_system::prepare_sized(descriptor);
}

}  // namespace

int move_up(int descriptor) noexcept {
  const int moved = ::fcntl(descriptor, F_DUPFD_CLOEXEC, spill_system::kLowestDescriptor);
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
  device_ = static_cast<std::uint64_t>(found.st_dev);
  inode_ = found.st_ino;
  return {};
}

void SpillFile::close() noexcept {
  if (is_intact()) ::close(descriptor_);
  descriptor_ = -1;
}

int SpillFile::map(FilePart part, bool shared) const noexcept {
  const int flags = MAP_FIXED | (shared ? MAP_SHARED : MAP_PRIVATE | MAP_NORESERVE);
  void* const mapped =
      ::mmap(part.address, part.size, PROT_READ | PROT_WRITE, flags, descriptor_, part.offset);
  return mapped == MAP_FAILED ? errno : 0;
}

int SpillFile::write_zeros(FilePart part) const noexcept {
  static constinit std::array<std::byte, 1 << 20>
      zeros{};  // if it were const, the library's file would hold it
  while (part.size != 0) {
    const std::size_t length = std::min(part.size, zeros.size());
    const ::ssize_t written = ::pwrite(descriptor_, zeros.data(), length, part.offset);
    if (written == 0) return ENOSPC;
    if (written < 0 && errno != EINTR) return errno;
    if (written < 0) continue;
    part.offset += written;
    part.size -= static_cast<std::size_t>(written);
  }
  return 0;
}

void SpillFile::empty(FilePart part) const noexcept {
  if (!punch(part)) static_cast<void>(write_zeros(part));
}

bool SpillFile::is_intact() const noexcept {
  struct stat found {};
  return is_open() && ::fstat(descriptor_, &found) == 0 &&
         static_cast<std::uint64_t>(found.st_dev) == device_ && found.st_ino == inode_;
}

}  // namespace etstream::heap
