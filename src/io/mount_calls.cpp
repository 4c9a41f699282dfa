// SPDX-License-Identifier: BSD-3-Clause
#include "io/mount_calls.h"

#include <cerrno>

namespace etstream {

bool mount_lacks(MountCall call, int error) noexcept {
  // On Linux ENOTSUP is EOPNOTSUPP.
  if (error == ENOSYS || error == EOPNOTSUPP || error == ENOTSUP) return true;
  switch (call) {
    case MountCall::kReserve:
      return false;
    case MountCall::kPushOut:
      return error == EINVAL;
    case MountCall::kCreate:
    case MountCall::kChangeMode:
      return error == EPERM || error == EINVAL;
    case MountCall::kChangeOwner:
      // EPERM is also for who may not give files away, EINVAL for an owner whom a container does not know.
      return error == EPERM || error == EINVAL;
    case MountCall::kSync:
    case MountCall::kSyncFolder:
      return error == EINVAL || error == EROFS;
    case MountCall::kRename:
      // EXDEV: a folder of a lower layer of an overlay. EBUSY: a file that is mounted by itself, as
      // containers have them.
      return error == EPERM || error == EINVAL || error == EXDEV || error == EBUSY;
  }
  return false;
}

}  // namespace etstream
