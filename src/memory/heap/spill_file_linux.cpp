// SPDX-License-Identifier: BSD-3-Clause
#include "memory/heap/spill_file.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <span>

namespace etstream::heap {
namespace {

/// Opens a file of /proc under a high number: a process may close all low ones.
int open_of_process(const char* path) noexcept { return move_up(::open(path, O_RDONLY | O_CLOEXEC)); }

/// Returns how many bytes of `out` were read.
std::size_t read_at(int file, std::uint64_t offset, std::span<std::byte> out) noexcept {
  const ::ssize_t read = ::pread(file, out.data(), out.size(), static_cast<off_t>(offset));
  return read < 0 ? 0 : static_cast<std::size_t>(read);
}

}  // namespace

std::uint64_t page_size() noexcept { return static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)); }

/// Returns the size of Linux's largest folio. One page of page-table entries maps as much memory; an entry
/// has 8 bytes.
std::uint64_t largest_group() noexcept { return page_size() * page_size() / 8; }

int advise(void* address, std::size_t size, int advice) noexcept {
  return static_cast<int>(::syscall(SYS_madvise, address, size, advice));
}

int wipe_in_children(void* page) noexcept {
  return advise(page, page_size(), MADV_WIPEONFORK) == 0 ? 0 : errno;
}

void drop_pages(FilePart part) noexcept { advise(part.address, part.size, MADV_DONTNEED); }

std::uint64_t mapped_bytes() noexcept {
  std::array<char, 128> text{};
  const int file = open_of_process("/proc/self/statm");
  const std::size_t size = read_at(file, 0, std::as_writable_bytes(std::span(text)));
  if (file >= 0) ::close(file);
  // The fields: all pages, the resident ones, and the resident ones of files.
  const char* const end = text.data() + size;
  const char* at = text.data();
  std::uint64_t number = 0;
  for (int field = 0; field < 3; ++field) {
    while (at != end && *at == ' ') ++at;
    at = std::from_chars(at, end, number).ptr;
  }
  return number * page_size();
}

PageMap::PageMap() noexcept : file_(open_of_process("/proc/self/pagemap")) {}
PageMap::~PageMap() {
  if (file_ >= 0) ::close(file_);
}

bool PageMap::is_readable() const noexcept { return file_ >= 0; }

std::uint64_t PageMap::resident_bytes(FilePart part) const noexcept {
  constexpr std::uint64_t kPresent = 1ULL << 63;
  std::array<std::uint64_t, 4096> entries;
  std::uint64_t pages = part.size / page_size();
  std::uint64_t resident = 0;
  std::uint64_t page = reinterpret_cast<std::uintptr_t>(part.address) / page_size();
  while (pages != 0) {
    const std::span batch(entries.data(), std::min<std::uint64_t>(pages, entries.size()));
    const std::size_t read = read_at(file_, page * sizeof(std::uint64_t), std::as_writable_bytes(batch));
    const std::uint64_t known = read / sizeof(std::uint64_t);
    if (known == 0) break;
    const auto is_present = [](std::uint64_t entry) { return (entry & kPresent) != 0; };
    resident += static_cast<std::uint64_t>(std::count_if(entries.data(), entries.data() + known, is_present));
    pages -= known;
    page += known;
  }
  return resident * page_size();
}

namespace {

/// The lowest number that move_up() chooses.
constexpr int kLowestDescriptor = 500;

/// Opens a file without a name. If the file system can't, the file has a name for a moment.
int make_unnamed(const char* folder) {
  const int made = ::open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (made >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return made;
  std::array<char, 4096> path{};
  const int length = std::snprintf(path.data(), path.size(), "%s/.etstream-heap-XXXXXX", folder);
  if (length < 0 || static_cast<std::size_t>(length) >= path.size()) {
    errno = ENAMETOOLONG;
    return -1;
  }
  const int named = ::mkostemp(path.data(), O_CLOEXEC);
  if (named >= 0) ::unlink(path.data());
  return named;
}

bool is_in_memory(int descriptor) {
  struct statfs found {};
  return ::fstatfs(descriptor, &found) == 0 && (found.f_type == TMPFS_MAGIC || found.f_type == RAMFS_MAGIC);
}

/// Lets a file system that copies on write change this file in place.
void write_in_place(int descriptor) {
  int flags = 0;
  if (::ioctl(descriptor, FS_IOC_GETFLAGS, &flags) != 0) return;
  flags |= FS_NOCOW_FL;
  // Other file systems refuse the flag, and need none.
  static_cast<void>(::ioctl(descriptor, FS_IOC_SETFLAGS, &flags));
}

/// Calls fallocate(). Returns 0, or errno's value.
int allocate(int descriptor, int mode, FilePart part) {
  while (::fallocate(descriptor, FALLOC_FL_KEEP_SIZE | mode, part.offset, static_cast<off_t>(part.size)) !=
         0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

/// Prepares an empty file for the heap, or refuses it because of its file system.
SpillError prepare(int descriptor, std::uint64_t size) {
  if (is_in_memory(descriptor)) return {EINVAL, "it is in memory itself (tmpfs)"};
  write_in_place(descriptor);
  // Otherwise ftruncate() would raise SIGXFSZ.
  ::rlimit largest{};
  if (::getrlimit(RLIMIT_FSIZE, &largest) == 0 && largest.rlim_cur < size) {
    return {EFBIG, "files may not be so large", {"ulimit -f", largest.rlim_cur, size}};
  }
  if (::ftruncate(descriptor, static_cast<off_t>(size)) != 0) return {errno, nullptr};
  const int failed = allocate(descriptor, 0, {.size = 1});
  if (failed == EOPNOTSUPP) return {failed, "its file system can't reserve room (fallocate)"};
  return {failed, nullptr};
}

}  // namespace

int move_up(int descriptor) noexcept {
  const int moved = ::fcntl(descriptor, F_DUPFD_CLOEXEC, kLowestDescriptor);
  if (moved < 0) return descriptor;
  ::close(descriptor);
  return moved;
}

SpillError SpillFile::open(const char* folder, std::uint64_t size) noexcept {
  const int made = make_unnamed(folder);
  if (made < 0) return {errno, nullptr};
  const SpillError failed = prepare(made, size);
  struct stat found {};
  if (failed || ::fstat(made, &found) != 0) {
    ::close(made);
    return failed;
  }
  descriptor_ = move_up(made);
  device_ = static_cast<std::uint64_t>(found.st_dev);
  inode_ = found.st_ino;
  return {};
}

void SpillFile::close() noexcept {
  if (is_intact()) ::close(descriptor_);
  descriptor_ = -1;
}

bool SpillFile::is_intact() const noexcept {
  struct stat found {};
  return is_open() && ::fstat(descriptor_, &found) == 0 &&
         static_cast<std::uint64_t>(found.st_dev) == device_ && found.st_ino == inode_;
}

int SpillFile::reserve(FilePart part) const noexcept {
  constexpr std::size_t kMostWritten = 4 << 20;
  const int failed = allocate(descriptor_, 0, part);
  // Zeros that are written at once lie in large groups of pages. Those cost a fifth of pages that are read
  // one by one when they are touched. Larger parts may never be used whole.
  if (failed == 0 && part.size <= kMostWritten) write_zeros(part);
  return failed;
}

int SpillFile::map(FilePart part, bool shared) const noexcept {
  const int flags = MAP_FIXED | (shared ? MAP_SHARED : MAP_PRIVATE | MAP_NORESERVE);
  void* const mapped =
      ::mmap(part.address, part.size, PROT_READ | PROT_WRITE, flags, descriptor_, part.offset);
  return mapped == MAP_FAILED ? errno : 0;
}

void SpillFile::empty(FilePart part) const noexcept {
  if (allocate(descriptor_, FALLOC_FL_PUNCH_HOLE, part) != 0) write_zeros(part);
}

bool SpillFile::clear(FilePart part) const noexcept {
  return allocate(descriptor_, FALLOC_FL_ZERO_RANGE, part) == 0;
}

void SpillFile::begin_writing(FilePart part) const noexcept {
  const auto size = static_cast<off_t>(part.size);
  static_cast<void>(::sync_file_range(descriptor_, part.offset, size, SYNC_FILE_RANGE_WRITE));
  advise(part.address, part.size, MADV_DONTNEED);
}

void SpillFile::end_writing(FilePart part) const noexcept {
  constexpr unsigned kAll = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
  const auto size = static_cast<off_t>(part.size);
  static_cast<void>(::sync_file_range(descriptor_, part.offset, size, kAll));
  static_cast<void>(::posix_fadvise(descriptor_, part.offset, size, POSIX_FADV_DONTNEED));
}

void SpillFile::write_zeros(FilePart part) const noexcept {
  static constinit std::array<std::byte, 1 << 20>
      zeros{};  // if it were const, the library's file would hold it
  while (part.size != 0) {
    const std::size_t length = std::min(part.size, zeros.size());
    const ::ssize_t written = ::pwrite(descriptor_, zeros.data(), length, part.offset);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    part.offset += written;
    part.size -= static_cast<std::size_t>(written);
  }
}

}  // namespace etstream::heap
