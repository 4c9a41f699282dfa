// SPDX-License-Identifier: BSD-3-Clause
#include "io/atomic_file_posix.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/try.h"

namespace etstream {
namespace {

/// Closes a copy of the descriptor: without fsync it is there that a network file system tells what it could
/// not write. The descriptor itself stays open for its lock.
int flush_by_closing(int fd) {
  return retried([&] {
    const int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return copy < 0 ? copy : ::close(copy);
  });
}

}  // namespace

Result<AtomicFile> AtomicFile::create(const std::string& destination) {
  ETSTREAM_ASSIGN(std::string resolved, follow_links(destination));
  ETSTREAM_ASSIGN(Temporary temporary, create_temporary_file(resolved));
  AtomicFile created(std::move(resolved), std::move(temporary));
  ETSTREAM_TRY(keep_owner_and_permissions(created.descriptor(), created.path()));
  return created;
}

Result<void> AtomicFile::publish(bool sync) {
  if (sync && retried([&] { return ::fsync(descriptor()); }) != 0) {
    return system_error(errno, "cannot sync", destination_);
  }
  if (!sync && flush_by_closing(descriptor()) != 0) {
    return system_error(errno, "cannot write", destination_);
  }
  if (!temporary_.rename_to(destination_)) return system_error(errno, "cannot replace", destination_);
  return sync ? sync_folder_of(destination_) : Result<void>();
}

}  // namespace etstream
