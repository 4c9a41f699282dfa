// SPDX-License-Identifier: BSD-3-Clause
#include <mach/mach.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "heap/pages.h"

namespace etstream::heap {

std::uint64_t page_size() noexcept { return static_cast<std::uint64_t>(::getpagesize()); }

/// Of one page each.
std::uint64_t largest_group() noexcept { return page_size(); }

/// There is no fork that passes by its handlers, which set the mark.
volatile char* make_mark() noexcept {
  void* const at = ::mmap(nullptr, page_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return at == MAP_FAILED ? nullptr : static_cast<volatile char*>(at);
}

void free_mark(volatile char* mark) noexcept { ::munmap(const_cast<char*>(mark), page_size()); }

void keep_from_children(std::byte* address, std::uint64_t size) noexcept {
  ::minherit(address, size, VM_INHERIT_NONE);
}

std::uint64_t mapped_bytes() noexcept {
  ::task_vm_info_data_t found{};
  ::mach_msg_type_number_t size = TASK_VM_INFO_COUNT;
  // Into an array of words, as all that task_info tells.
  const auto words = reinterpret_cast<::task_info_t>(&found);
  if (::task_info(::mach_task_self(), TASK_VM_INFO, words, &size) != KERN_SUCCESS) return 0;
  return found.external;
}

PageMap::PageMap() noexcept = default;
PageMap::~PageMap() = default;

std::uint64_t PageMap::resident_bytes(std::byte* address, std::uint64_t size) const noexcept {
  std::array<char, 4096> states;
  std::uint64_t resident = 0;
  for (std::uint64_t at = 0; at < size;) {
    const std::uint64_t length = std::min(size - at, states.size() * page_size());
    if (::mincore(address + at, length, states.data()) != 0) break;
    const auto pages = static_cast<std::ptrdiff_t>(length / page_size());
    resident += static_cast<std::uint64_t>(std::count_if(
        states.data(), states.data() + pages, [](char state) { return (state & MINCORE_INCORE) != 0; }));
    at += length;
  }
  return resident * page_size();
}

}  // namespace etstream::heap
