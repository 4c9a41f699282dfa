// SPDX-License-Identifier: BSD-3-Clause
//
// What the heap asks of the system's memory. Nothing here allocates.
#pragma once

#include <cstddef>
#include <cstdint>

namespace etstream::heap {

/// In bytes.
[[nodiscard]] std::uint64_t page_size() noexcept;
/// The most that the system takes in of a file in one group of pages, which begins at a multiple of that.
[[nodiscard]] std::uint64_t largest_group() noexcept;

/// A byte that is 0 in any process that this one forks, however it does; or null, with errno set.
[[nodiscard]] volatile char* make_mark() noexcept;
/// Of what make_mark() gave.
void free_mark(volatile char* mark) noexcept;

/// Has a forked child have nothing at all there.
void keep_from_children(std::byte* address, std::uint64_t size) noexcept;

/// How many bytes of mapped files this process has in memory, the heap's and others'.
[[nodiscard]] std::uint64_t mapped_bytes() noexcept;

/// Tells how much of parts of the address space is in memory.
class PageMap {
 public:
  PageMap() noexcept;
  ~PageMap();
  PageMap(const PageMap&) = delete;
  PageMap& operator=(const PageMap&) = delete;

  [[nodiscard]] std::uint64_t resident_bytes(std::byte* address, std::uint64_t size) const noexcept;

 private:
  [[maybe_unused]] int file_ = -1;  // where the system tells it by one
};

}  // namespace etstream::heap
