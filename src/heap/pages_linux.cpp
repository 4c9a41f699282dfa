// SPDX-License-Identifier: BSD-3-Clause
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <span>

#include "heap/pages.h"
#include "heap/spill_file.h"

namespace etstream::heap {
namespace {

/// A file of /proc. The process may close what it finds open among the lower numbers.
int open_of_process(const char* path) noexcept { return move_up(::open(path, O_RDONLY | O_CLOEXEC)); }

/// How many bytes of `out` were read.
std::size_t read_at(int file, std::uint64_t offset, std::span<std::byte> out) noexcept {
  const ::ssize_t read = ::pread(file, out.data(), out.size(), static_cast<off_t>(offset));
  return read < 0 ? 0 : static_cast<std::size_t>(read);
}

}  // namespace

std::uint64_t page_size() noexcept { return static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)); }

/// Of Linux's folios: what one page of its tables maps, each of whose entries takes 8 bytes.
std::uint64_t largest_group() noexcept { return page_size() * page_size() / 8; }

volatile char* make_mark() noexcept {
  void* const at = ::mmap(nullptr, page_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return nullptr;
  if (::madvise(at, page_size(), MADV_WIPEONFORK) != 0) {
    ::munmap(at, page_size());
    return nullptr;
  }
  return static_cast<volatile char*>(at);
}

void free_mark(volatile char* mark) noexcept { ::munmap(const_cast<char*>(mark), page_size()); }

void keep_from_children(std::byte* address, std::uint64_t size) noexcept {
  ::madvise(address, size, MADV_DONTFORK);
}

std::uint64_t mapped_bytes() noexcept {
  std::array<char, 128> text{};
  const int file = open_of_process("/proc/self/statm");
  const std::size_t size = read_at(file, 0, std::as_writable_bytes(std::span(text)));
  if (file >= 0) ::close(file);
  // All pages, those that are resident, and of these those of files.
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

std::uint64_t PageMap::resident_bytes(std::byte* address, std::uint64_t size) const noexcept {
  constexpr std::uint64_t kPresent = 1ULL << 63;
  std::array<std::uint64_t, 4096> entries;
  std::uint64_t pages = size / page_size();
  std::uint64_t resident = 0;
  std::uint64_t page = reinterpret_cast<std::uintptr_t>(address) / page_size();
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
