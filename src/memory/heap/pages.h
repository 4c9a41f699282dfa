// SPDX-License-Identifier: BSD-3-Clause
//
// The heap's requests about the system's memory. Nothing here allocates.
#pragma once

#include <cstddef>
#include <cstdint>

#include "memory/heap/spill_file.h"

namespace etstream::heap {

/// Returns the size of a page in bytes.
[[nodiscard]] std::uint64_t page_size() noexcept;
/// Returns the size of the largest group of pages (folio) of a file, which begins at a multiple of that.
[[nodiscard]] std::uint64_t largest_group() noexcept;

/// Makes an anonymous page all zeros in children, however they are forked. Returns 0, or errno's value.
[[nodiscard]] int wipe_in_children(void* page) noexcept;

/// Calls madvise() of the system, not Heap::madvise() in its place. Returns 0, or -1 with errno set.
int advise(void* address, std::size_t size, int advice) noexcept;

/// Frees the pages of a private copy that were written.
void drop_pages(FilePart part) noexcept;

/// Returns how many bytes of mapped files this process has in memory, the heap's and others'.
[[nodiscard]] std::uint64_t mapped_bytes() noexcept;

/// The pages of a part of the address space that are in memory.
class PageMap {
 public:
  PageMap() noexcept;
  ~PageMap();
  PageMap(const PageMap&) = delete;
  PageMap& operator=(const PageMap&) = delete;

  /// Returns false if the system does not tell: resident_bytes() is 0 then.
  [[nodiscard]] bool is_readable() const noexcept;
  [[nodiscard]] std::uint64_t resident_bytes(FilePart part) const noexcept;

 private:
  int file_ = -1;
};

/// Returns whether the system tells how much of the heap is in memory. Otherwise no limit can be kept.
[[nodiscard]] inline bool can_keep_limit() noexcept { return mapped_bytes() != 0 && PageMap().is_readable(); }

}  // namespace etstream::heap
