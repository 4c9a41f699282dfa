// SPDX-License-Identifier: BSD-3-Clause
//
// macOS. It can't write a part of a file to the disk by itself, and shares blocks between whole files alone
// (clonefile).
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stdio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "core/io/descriptor_posix.h"
#include "core/io/file_calls_posix.h"

namespace etstream {
namespace {

/// The bytes that are mapped at once, to look for them in the page cache.
constexpr std::uint64_t kMappedAtOnce = std::uint64_t{64} << 20;

std::uint64_t page_size() noexcept { return static_cast<std::uint64_t>(::getpagesize()); }

/// Calls `look(address, size)` for a part of a file in memory, from the beginning of a page on. Does not read
/// the part. Returns nothing if it can't be mapped.
template <class Look>
void look_at(int fd, std::uint64_t offset, std::uint64_t size, Look look) noexcept {
  const std::uint64_t begin = offset - offset % page_size();
  const auto length = static_cast<std::size_t>(offset + size - begin);
  void* const mapped = ::mmap(nullptr, length, PROT_READ, MAP_SHARED, fd, static_cast<off_t>(begin));
  if (mapped == MAP_FAILED) return;
  look(mapped, length);
  ::munmap(mapped, length);
}

}  // namespace

/// Syncs a file. fsync lets the drive decide when to write, and network file systems have no other call.
int sync_file(int fd) noexcept {
  const int done = ::fcntl(fd, F_FULLFSYNC);
  return done == -1 && errno != EINTR && errno != EIO ? ::fsync(fd) : done;
}

int sync_file_system(int fd) noexcept {
  return ::fsync_volume_np(fd, SYNC_VOLUME_FULLSYNC | SYNC_VOLUME_WAIT);
}

/// Reserves space for new files alone: macOS reserves only space behind the space that a file has.
int reserve_space(int fd, std::uint64_t offset, std::uint64_t size) noexcept {
  struct stat found {};
  if (::fstat(fd, &found) != 0) return -1;
  if (static_cast<std::uint64_t>(found.st_size) != offset || found.st_blocks != 0) {
    errno = EOPNOTSUPP;
    return -1;
  }
  fstore_t wanted{};
  wanted.fst_flags = F_ALLOCATEALL;
  wanted.fst_posmode = F_PEOFPOSMODE;
  wanted.fst_length = static_cast<off_t>(size);
  if (::fcntl(fd, F_PREALLOCATE, &wanted) != -1) return 0;
  if (errno == ENOTSUP || errno == EINVAL) errno = EOPNOTSUPP;
  return -1;
}

void expect_one_writing(int fd) noexcept { static_cast<void>(::fcntl(fd, F_NOCACHE, 1)); }

int push_out(int /*fd*/, std::uint64_t /*offset*/, std::uint64_t /*size*/, bool /*wait*/) noexcept {
  errno = EOPNOTSUPP;
  return -1;
}

void drop_cached(int fd, std::uint64_t offset, std::uint64_t size) noexcept {
  for (std::uint64_t at = 0; at < size; at += kMappedAtOnce) {
    look_at(fd, offset + at, std::min(kMappedAtOnce, size - at),
            [](void* mapped, std::size_t length) { ::msync(mapped, length, MS_INVALIDATE); });
  }
}

bool is_cached_at(int fd, std::uint64_t offset) noexcept {
  bool is_cached = false;
  look_at(fd, offset, 1, [&](void* mapped, std::size_t length) {
    char state = 0;
    is_cached =
        ::mincore(mapped, std::min<std::size_t>(length, 1), &state) == 0 && (state & MINCORE_INCORE) != 0;
  });
  return is_cached;
}

bool share_blocks(int /*from*/, std::uint64_t /*offset*/, std::uint64_t /*size*/, int /*to*/,
                  std::uint64_t /*at*/) noexcept {
  return false;
}

int exchange_names(const char* one, const char* other) noexcept {
  return ::renamex_np(one, other, RENAME_SWAP);
}

FileTimes times_of(const struct stat& found) noexcept { return {found.st_mtimespec, found.st_ctimespec}; }

}  // namespace etstream
