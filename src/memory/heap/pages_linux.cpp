// SPDX-License-Identifier: BSD-3-Clause
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <span>

#include "memory/heap/pages.h"

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

}  // namespace etstream::heap
