// SPDX-License-Identifier: BSD-3-Clause
#include <mach/mach.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "memory/heap/pages.h"

namespace etstream::heap {

std::uint64_t page_size() noexcept { return static_cast<std::uint64_t>(::getpagesize()); }

/// Returns the size of one page: groups have no more.
std::uint64_t largest_group() noexcept { return page_size(); }

/// Does nothing: no fork avoids the handlers of a fork, which set the mark.
int wipe_in_children(void* /*page*/) noexcept { return 0; }

void keep_from_children(FilePart part) noexcept { ::minherit(part.address, part.size, VM_INHERIT_NONE); }

std::uint64_t mapped_bytes() noexcept {
  ::task_vm_info_data_t found{};
  ::mach_msg_type_number_t size = TASK_VM_INFO_COUNT;
  // task_info() takes an array of words for every kind of answer.
  const auto words = reinterpret_cast<::task_info_t>(&found);
  if (::task_info(::mach_task_self(), TASK_VM_INFO, words, &size) != KERN_SUCCESS) return 0;
  return found.external;
}

PageMap::PageMap() noexcept = default;
PageMap::~PageMap() = default;

bool PageMap::is_readable() const noexcept { return true; }

std::uint64_t PageMap::resident_bytes(FilePart part) const noexcept {
  std::array<char, 4096> states;
  std::uint64_t resident = 0;
  for (std::uint64_t at = 0; at < part.size;) {
    const std::uint64_t length = std::min<std::uint64_t>(part.size - at, states.size() * page_size());
    if (::mincore(part.address + at, length, states.data()) != 0) break;
    const auto pages = static_cast<std::ptrdiff_t>(length / page_size());
    resident += static_cast<std::uint64_t>(std::count_if(
        states.data(), states.data() + pages, [](char state) { return (state & MINCORE_INCORE) != 0; }));
    at += length;
  }
  return resident * page_size();
}

}  // namespace etstream::heap
