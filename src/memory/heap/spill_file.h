// SPDX-License-Identifier: BSD-3-Clause
//
// The file without a name that holds the heap's blocks, and the heap's requests about the system's memory.
// Nothing here allocates.
#pragma once

#include <cstddef>
#include <cstdint>

namespace etstream::heap {

/// A limit of the process's that is too low for the heap, in bytes.
struct LowLimit {
  const char* name = nullptr;  // "ulimit -v"; null for none
  std::uint64_t set = 0;
  std::uint64_t needed = 0;
};

/// The reason why a folder can't hold the heap: errno's value, and words and a limit if they say more.
struct SpillError {
  int code = 0;
  const char* reason = nullptr;
  LowLimit limit = {};

  explicit operator bool() const noexcept { return code != 0; }
};

/// Moves a descriptor above the numbers that programs choose themselves, if one is free. Returns its number.
[[nodiscard]] int move_up(int descriptor) noexcept;

/// A part of the file, in bytes, and its address.
struct FilePart {
  std::byte* address = nullptr;
  std::int64_t offset = 0;
  std::size_t size = 0;
};

/// A file for one thread at a time.
class SpillFile {
 public:
  constexpr SpillFile() = default;

  /// Makes a file of `size` bytes in `folder`. It uses no disk space yet, and disappears with its last
  /// mapping and descriptor. Refuses folders that are in memory, or whose file system can't reserve space.
  [[nodiscard]] SpillError open(const char* folder, std::uint64_t size) noexcept;
  /// Closes the descriptor, unless it has become another file's. Mappings stay.
  void close() noexcept;

  [[nodiscard]] bool is_open() const noexcept { return descriptor_ >= 0; }
  /// Returns whether the descriptor is still this file's: programs close descriptors that they did not open.
  [[nodiscard]] bool is_intact() const noexcept;

  /// Reserves disk space for a part that is zeros. Returns 0, or errno's value; a piece may have space then.
  [[nodiscard]] int reserve(FilePart part) const noexcept;
  /// Maps a part at its address, shared with the file or as a private copy. Returns 0, or errno's value.
  [[nodiscard]] int map(FilePart part, bool shared) const noexcept;
  /// Gives back the disk space and the memory of a part, which then reads as zeros.
  void empty(FilePart part) const noexcept;
  /// Makes a part zeros, and gives back its memory. It keeps its disk space. Returns false if the file system
  /// can't, with the part as it was.
  [[nodiscard]] bool clear(FilePart part) const noexcept;
  /// Begins to write a part that is mapped shared, and unmaps its pages until they are used again.
  void begin_writing(FilePart part) const noexcept;
  /// Waits until they are written, and drops the part from the page cache if nobody has used it meanwhile.
  void end_writing(FilePart part) const noexcept;

 private:
  /// Writes zeros to a part, up to the first error.
  void write_zeros(FilePart part) const noexcept;

  int descriptor_ = -1;
  std::uint64_t device_ = 0;
  std::uint64_t inode_ = 0;
};

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
