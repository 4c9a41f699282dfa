// SPDX-License-Identifier: BSD-3-Clause
//
// Calls that differ between Linux and macOS. Unless a comment says otherwise they return 0, or -1 with errno
// set, and a signal may interrupt them (EINTR).
// The errors that say that a call is one that object stores, FUSE and network mounts lack are decided here
// too.
#pragma once

#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <ctime>

#include "etstream/byte_source.h"

namespace etstream {

/// Writes all of a file to the disk, not only to the drive's memory.
[[nodiscard]] int sync_file(int fd) noexcept;
/// Writes all files of the file system of `fd` to the disk.
[[nodiscard]] int sync_file_system(int fd) noexcept;

/// Reserves disk space for a part of a file that has not been written yet; the file's size stays. EOPNOTSUPP,
/// ENOSYS: the file system can't.
[[nodiscard]] int reserve_space(int fd, std::uint64_t offset, std::uint64_t size) noexcept;

/// Tells the system that a file is written once, and not read soon. Where windows can't be pushed out this
/// keeps it from filling the page cache.
void expect_one_writing(int fd) noexcept;
/// Begins to write a part from the page cache to the disk; with `wait`, also waits until it is there.
/// EOPNOTSUPP, ENOSYS, EINVAL: the file system can't.
[[nodiscard]] int push_out(int fd, std::uint64_t offset, std::uint64_t size, bool wait) noexcept;
/// Drops a part that is on the disk from the page cache.
void drop_cached(int fd, std::uint64_t offset, std::uint64_t size) noexcept;
/// Returns whether the page of the byte at `offset`, inside the file, lies in the page cache.
[[nodiscard]] bool is_cached_at(int fd, std::uint64_t offset) noexcept;

/// Puts the bytes of one file into another by sharing their blocks on the disk. Both offsets and the size are
/// multiples of a block. Returns whether that worked.
[[nodiscard]] bool share_blocks(int from, std::uint64_t offset, std::uint64_t size, int to,
                                std::uint64_t at) noexcept;

/// Exchanges what two names stand for.
[[nodiscard]] int exchange_names(const char* one, const char* other) noexcept;

struct FileTimes {
  timespec modified;
  timespec changed;  // which a writer can't put back, as it can the time before
};
[[nodiscard]] FileTimes times_of(const struct stat& found) noexcept;

[[nodiscard]] inline FileIdentity file_identity(const struct stat& found) noexcept {
  return {static_cast<std::uint64_t>(found.st_dev), static_cast<std::uint64_t>(found.st_ino)};
}

/// A call that a mount may lack.
enum class MountCall {
  kCreate,
  kChangeOwner,
  kChangeMode,
  kReserve,
  kPushOut,
  kSync,
  kSyncFolder,
  kRename,
};

/// Returns whether errno's value `error`, of this call, says that the mount can't do such a thing, rather
/// than that it failed. An error of the disk (EIO), a full one and a folder that may not be written never do.
[[nodiscard]] inline bool mount_lacks(MountCall call, int error) noexcept {
  if (error == ENOSYS || error == EOPNOTSUPP) return true;
#if ENOTSUP != EOPNOTSUPP
  if (error == ENOTSUP) return true;
#endif
  switch (call) {
    case MountCall::kReserve:
      return false;
    case MountCall::kPushOut:
      return error == EINVAL;
    // On a change of owner, EPERM may also mean that this process may not give files away, and EINVAL that a
    // container does not know the owner.
    case MountCall::kCreate:
    case MountCall::kChangeMode:
    case MountCall::kChangeOwner:
      return error == EPERM || error == EINVAL;
    case MountCall::kSync:
    case MountCall::kSyncFolder:
      return error == EINVAL || error == EROFS;
    case MountCall::kRename:
      // EXDEV: a folder of a lower layer of an overlay. EBUSY: a file that is mounted by itself, as in
      // containers.
      return error == EPERM || error == EINVAL || error == EXDEV || error == EBUSY;
  }
  return false;
}

}  // namespace etstream
