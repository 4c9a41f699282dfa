// SPDX-License-Identifier: BSD-3-Clause
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstdio>

#include "core/io/descriptor_posix.h"
#include "core/io/file_calls_posix.h"

namespace etstream {

int sync_file(int fd) noexcept { return ::fsync(fd); }

int sync_file_system(int fd) noexcept { return ::syncfs(fd); }

int reserve_space(int fd, std::uint64_t offset, std::uint64_t size) noexcept {
  return ::fallocate(fd, FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset), static_cast<off_t>(size));
}

void expect_one_writing(int /*fd*/) noexcept {}

int push_out(int fd, std::uint64_t offset, std::uint64_t size, bool wait) noexcept {
  constexpr unsigned kAll = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
  return ::sync_file_range(fd, static_cast<off_t>(offset), static_cast<off_t>(size),
                           wait ? kAll : unsigned{SYNC_FILE_RANGE_WRITE});
}

void drop_cached(int fd, std::uint64_t offset, std::uint64_t size) noexcept {
  ::posix_fadvise(fd, static_cast<off_t>(offset), static_cast<off_t>(size), POSIX_FADV_DONTNEED);
}

/// Returns whether a page is cached. mincore fetches nothing, but says that every page of a file is cached
/// unless one may write the file. For such files RWF_NOWAIT decides. It has missing pages fetched, and a fast
/// disk may have fetched them before the answer.
bool is_cached_at(int fd, std::uint64_t offset) noexcept {
  const auto place = static_cast<off_t>(offset);
  const off_t page = ::sysconf(_SC_PAGESIZE);
  void* const mapped = ::mmap(nullptr, 1, PROT_READ, MAP_SHARED, fd, place - place % page);
  if (mapped != MAP_FAILED) {
    unsigned char resident = 1;
    ::mincore(mapped, 1, &resident);
    ::munmap(mapped, 1);
    if ((resident & 1) == 0) return false;
  }
  char byte = 0;
  const iovec one{&byte, 1};
  return ::preadv2(fd, &one, 1, place, RWF_NOWAIT) == 1;
}

bool share_blocks(int from, std::uint64_t offset, std::uint64_t size, int to, std::uint64_t at) noexcept {
  file_clone_range range{};
  range.src_fd = from;
  range.src_offset = offset;
  range.src_length = size;
  range.dest_offset = at;
  return retried([&] { return ::ioctl(to, FICLONERANGE, &range); }) == 0;
}

int exchange_names(const char* one, const char* other) noexcept {
  return ::renameat2(AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE);
}

FileTimes times_of(const struct stat& found) noexcept { return {found.st_mtim, found.st_ctim}; }

}  // namespace etstream
