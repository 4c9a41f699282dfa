// SPDX-License-Identifier: BSD-3-Clause
//
// What the heap asks of the system's memory. Nothing here allocates.
#pragma once

#include <cstdint>

#include "memory/heap/spill_file.h"

namespace etstream::heap {

/// In bytes.
[[nodiscard]] std::uint64_t page_size() noexcept;
/// The size of the largest group of pages (folio) of a file; it begins at a multiple of that.
[[nodiscard]] std::uint64_t largest_group() noexcept;

/// Has an anonymous page be zeros in children, however they are forked. Returns 0, or errno's value.
[[nodiscard]] int wipe_in_children(void* page) noexcept;

/// Has a forked child have nothing at all there.
void keep_from_children(FilePart part) noexcept;

/// How many bytes of mapped files this process has in memory, the heap's and others'.
[[nodiscard]] std::uint64_t mapped_bytes() noexcept;

/// How much of a part of the address space is in memory.
class PageMap {
 public:
  PageMap() noexcept;
  ~PageMap();
  PageMap(const PageMap&) = delete;
  PageMap& operator=(const PageMap&) = delete;

  /// False where the system does not tell: resident_bytes() is 0 then.
  [[nodiscard]] bool is_readable() const noexcept;
  [[nodiscard]] std::uint64_t resident_bytes(FilePart part) const noexcept;

 private:
  [[maybe_unused]] int file_ = -1;  // on Linux
};

/// Whether the system tells what the heap has in memory. Without that no limit can be kept.
[[nodiscard]] inline bool can_keep_limit() noexcept { return mapped_bytes() != 0 && PageMap().is_readable(); }

}  // namespace etstream::heap
