// SPDX-License-Identifier: BSD-3-Clause
#include "io/atomic_file_posix.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/try.h"
#include "io/file_calls_posix.h"

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

Result<void> AtomicFile::settle(bool sync) {
  if (sync && retried([&] { return sync_file(descriptor()); }) != 0) {
    return system_error(errno, "cannot sync", destination_);
  }
  if (!sync && flush_by_closing(descriptor()) != 0) {
    return system_error(errno, "cannot write", destination_);
  }
  return {};
}

Result<void> AtomicFile::publish(bool sync, bool keep) {
  if (keep && temporary_.exchange_with(destination_)) {
    published_ = Published::kExchanged;
  } else {
    struct stat before {};
    const bool is_new = ::lstat(destination_.c_str(), &before) != 0;
    if (!temporary_.rename_to(destination_)) return system_error(errno, "cannot replace", destination_);
    published_ = is_new ? Published::kNew : Published::kReplaced;
  }
  return sync ? sync_folder_of(destination_) : Result<void>();
}

Result<void> AtomicFile::take_back() {
  const Published published = std::exchange(published_, Published::kNot);
  switch (published) {
    case Published::kNot:
      return {};
    case Published::kNew:
      if (retried([&] { return ::unlink(destination_.c_str()); }) == 0) return {};
      break;
    case Published::kExchanged:
      if (temporary_.exchange_with(destination_)) return {};
      break;
    case Published::kReplaced:
      errno = EOPNOTSUPP;
      break;
  }
  return system_error(errno, "cannot put back what was at", destination_);
}

}  // namespace etstream
