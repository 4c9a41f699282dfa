// SPDX-License-Identifier: BSD-3-Clause
//
// Calls that other file systems have and object stores, FUSE and network mounts lack. This header decides
// which errors say so.
#pragma once

namespace etstream {

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
[[nodiscard]] bool mount_lacks(MountCall call, int error) noexcept;

}  // namespace etstream
