// SPDX-License-Identifier: BSD-3-Clause
#include "heap/spill_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace etstream::heap {
namespace {

int map_at(std::byte* address, std::uint64_t size, int protection, int flags, int descriptor,
           std::uint64_t offset) {
  void* const mapped =
      ::mmap(address, size, protection, MAP_FIXED | flags, descriptor, static_cast<off_t>(offset));
  return mapped == MAP_FAILED ? errno : 0;
}

}  // namespace

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
  static constexpr std::array<std::byte, 64 << 10> kZeros{};
  for (std::uint64_t at = 0; at < size;) {
    const auto length = static_cast<std::size_t>(std::min<std::uint64_t>(size - at, kZeros.size()));
    const ::ssize_t written = ::pwrite(descriptor_, kZeros.data(), length, static_cast<off_t>(offset + at));
    if (written > 0) at += static_cast<std::uint64_t>(written);
    if (written == 0) return ENOSPC;
    if (written < 0 && errno != EINTR) return errno;
  }
  return 0;
}

int SpillFile::map(std::byte* address, std::uint64_t offset, std::uint64_t size, bool shared) const noexcept {
  return map_at(address, size, PROT_READ | PROT_WRITE, shared ? MAP_SHARED : MAP_PRIVATE, descriptor_,
                offset);
}

/// Nothing is mapped there while the hole is made, so that no page of what was there stays.
void SpillFile::empty(std::byte* address, std::uint64_t offset, std::uint64_t size) const noexcept {
  const bool is_unmapped =
      map_at(address, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == 0;
  ::fpunchhole_t hole{};
  hole.fp_offset = static_cast<off_t>(offset);
  hole.fp_length = static_cast<off_t>(size);
  const bool is_empty = is_unmapped && ::fcntl(descriptor_, F_PUNCHHOLE, &hole) != -1;
  if (is_unmapped && map(address, offset, size, true) != 0) return;  // who touches it crashes
  if (!is_empty) std::memset(address, 0, size);
}

void SpillFile::begin_writing(std::byte* address, std::uint64_t /*offset*/,
                              std::uint64_t size) const noexcept {
  static_cast<void>(::msync(address, size, MS_ASYNC));
}

void SpillFile::end_writing(std::byte* address, std::uint64_t /*offset*/, std::uint64_t size) const noexcept {
  static_cast<void>(::msync(address, size, MS_SYNC | MS_INVALIDATE));
}

}  // namespace etstream::heap
