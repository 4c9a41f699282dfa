// SPDX-License-Identifier: BSD-3-Clause
#include "core/io/mount_calls.h"

#include <cerrno>

namespace etstream {

bool mount_lacks(MountCall call, int error) noexcept {
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
