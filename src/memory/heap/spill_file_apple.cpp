// SPDX-License-Identifier: BSD-3-Clause
#include "memory/heap/spill_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/mount.h>

#include <cerrno>
#include <cstring>

namespace etstream::heap {
namespace spill_system {

const int kLowestDescriptor = 200;  // of 256, which is the usual limit

SpillError prepare_empty(int descriptor) noexcept {
  struct statfs found {};
  if (::fstatfs(descriptor, &found) != 0) return {errno, nullptr};
  if (std::strcmp(found.f_fstypename, "apfs") == 0) return {};
  return {EINVAL, "its file system is not APFS, where files may have holes"};
}

SpillError prepare_sized(int /*descriptor*/) noexcept { return {}; }

}  // namespace spill_system

/// Writes zeros, which a full disk refuses: F_PREALLOCATE reserves space only at the end of a file, and parts
/// lie anywhere in it.
int SpillFile::reserve(FilePart part) const noexcept { return write_zeros(part); }

bool SpillFile::punch(FilePart part) const noexcept {
  ::fpunchhole_t hole{};
  hole.fp_offset = part.offset;
  hole.fp_length = static_cast<off_t>(part.size);
  return ::fcntl(descriptor_, F_PUNCHHOLE, &hole) != -1;
}

void SpillFile::begin_writing(FilePart part) const noexcept {
  static_cast<void>(::msync(part.address, part.size, MS_ASYNC));
}

void SpillFile::end_writing(FilePart part) const noexcept {
  static_cast<void>(::msync(part.address, part.size, MS_SYNC | MS_INVALIDATE));
}

}  // namespace etstream::heap
