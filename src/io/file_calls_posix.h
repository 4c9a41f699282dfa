// SPDX-License-Identifier: BSD-3-Clause
//
// What each system has calls of its own for, or does otherwise than the others. Where nothing else is said a
// call returns 0, or -1 with errno set, and a signal may interrupt it (EINTR).
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <ctime>

#include "etstream/byte_source.h"

namespace etstream {

/// Has all of a file on the disk, not only in the drive's memory.
[[nodiscard]] int sync_file(int fd) noexcept;
/// Has all that was written to the file system of `fd` on the disk.
[[nodiscard]] int sync_file_system(int fd) noexcept;

/// Has disk space for a part of a file that has not been written yet; its size stays. EOPNOTSUPP, ENOSYS: the
/// file system can't.
[[nodiscard]] int reserve_space(int fd, std::uint64_t offset, std::uint64_t size) noexcept;

/// Tells that a file is written once, and not read soon. Where windows can't be pushed out this keeps it from
/// filling the page cache.
void expect_one_writing(int fd) noexcept;
/// Begins to write a part from the page cache to the disk; with `wait`, also waits until it is there.
/// EOPNOTSUPP, ENOSYS, EINVAL: the file system can't.
[[nodiscard]] int push_out(int fd, std::uint64_t offset, std::uint64_t size, bool wait) noexcept;
/// Has the page cache let go of a part that is on the disk.
void drop_cached(int fd, std::uint64_t offset, std::uint64_t size) noexcept;
/// Whether the page with the byte at `offset`, inside the file, lies in the page cache.
[[nodiscard]] bool is_cached_at(int fd, std::uint64_t offset) noexcept;

/// Has the bytes of one file stand in another, as the same blocks on the disk. Both offsets and the size are
/// multiples of a block. Returns whether they do now.
[[nodiscard]] bool share_blocks(int from, std::uint64_t offset, std::uint64_t size, int to,
                                std::uint64_t at) noexcept;

/// Has each of two names stand for what the other did.
[[nodiscard]] int exchange_names(const char* one, const char* other) noexcept;

struct FileTimes {
  timespec modified;
  timespec changed;  // which a writer can't put back, as it can the time before
};
[[nodiscard]] FileTimes times_of(const struct stat& found) noexcept;

[[nodiscard]] inline FileIdentity file_identity(const struct stat& found) noexcept {
  return {static_cast<std::uint64_t>(found.st_dev), static_cast<std::uint64_t>(found.st_ino)};
}

}  // namespace etstream
