// SPDX-License-Identifier: BSD-3-Clause
#include "heap/spill_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace etstream::heap {
namespace spill_system {

const int kLowestDescriptor = 200;  // of 256, which is the usual limit

int open_nameless(const char* /*folder*/) noexcept {
  errno = EOPNOTSUPP;
  return -1;
}

SpillError prepare_empty(int descriptor) noexcept {
  struct statfs found {};
  if (::fstatfs(descriptor, &found) != 0) return {errno, nullptr};
  if (std::strcmp(found.f_fstypename, "apfs") == 0) return {};
  return {EINVAL, "its file system is not APFS, where files may have holes"};
}

SpillError prepare_sized(int /*descriptor*/) noexcept { return {}; }

}  // namespace spill_system

/// F_PREALLOCATE has space for the end of a file alone, and these parts are anywhere in it: so zeros are
/// written, which a full disk refuses.
int SpillFile::reserve(std::uint64_t offset, std::uint64_t size) const noexcept {
  return write_zeros(offset, size);
}

int SpillFile::map(std::byte* address, std::uint64_t offset, std::uint64_t size, bool shared) const noexcept {
  void* const mapped =
      ::mmap(address, size, PROT_READ | PROT_WRITE, MAP_FIXED | (shared ? MAP_SHARED : MAP_PRIVATE),
             descriptor_, static_cast<off_t>(offset));
  return mapped == MAP_FAILED ? errno : 0;
}

bool SpillFile::punch(std::uint64_t offset, std::uint64_t size) const noexcept {
  ::fpunchhole_t hole{};
  hole.fp_offset = static_cast<off_t>(offset);
  hole.fp_length = static_cast<off_t>(size);
  return ::fcntl(descriptor_, F_PUNCHHOLE, &hole) != -1;
}

void SpillFile::begin_writing(std::byte* address, std::uint64_t /*offset*/,
                              std::uint64_t size) const noexcept {
  static_cast<void>(::msync(address, size, MS_ASYNC));
}

void SpillFile::end_writing(std::byte* address, std::uint64_t /*offset*/, std::uint64_t size) const noexcept {
  static_cast<void>(::msync(address, size, MS_SYNC | MS_INVALIDATE));
}

}  // namespace etstream::heap
