// SPDX-License-Identifier: BSD-3-Clause
//
// The file without a name that holds the heap's blocks. Nothing here allocates.
#pragma once

#include <cstddef>
#include <cstdint>

namespace etstream::heap {

/// Why a folder can't hold the heap: errno's value, and in words where those say more.
struct SpillError {
  int code = 0;
  const char* reason = nullptr;

  explicit operator bool() const noexcept { return code != 0; }
};

/// The same open file under a number above those that shells and programs choose themselves, if there is one.
[[nodiscard]] int move_up(int descriptor) noexcept;

/// One thread at a time.
class SpillFile {
 public:
  constexpr SpillFile() = default;

  /// Makes a file of `size` bytes in `folder`, none of which takes room yet. It is gone with its last mapping
  /// and descriptor. Refuses folders that are in memory, or whose file system can't promise room.
  [[nodiscard]] SpillError open(const char* folder, std::uint64_t size) noexcept;
  /// Closes it, unless the descriptor has become another file's; what is mapped stays.
  void close() noexcept;

  [[nodiscard]] bool is_open() const noexcept { return descriptor_ >= 0; }
  /// Whether the descriptor is still this file's: programs close what they did not open.
  [[nodiscard]] bool is_intact() const noexcept;

  /// Has disk space for a part that is zeros, or says why not: 0, or errno's value; some of it may have space
  /// then.
  [[nodiscard]] int reserve(std::uint64_t offset, std::uint64_t size) const noexcept;
  /// Maps a part at `address`, shared with the file or as a copy that shares its pages until it is written
  /// to.
  [[nodiscard]] int map(std::byte* address, std::uint64_t offset, std::uint64_t size,
                        bool shared) const noexcept;
  /// Gives back what a part has on the disk and in memory; it is zeros then.
  void empty(std::uint64_t offset, std::uint64_t size) const noexcept;
  /// Begins to write a part that is mapped shared at `address` to the disk; its pages are no longer this
  /// process's until they are used.
  void begin_writing(std::byte* address, std::uint64_t offset, std::uint64_t size) const noexcept;
  /// Ends that, and drops the part from the page cache where nobody has used it meanwhile.
  void end_writing(std::byte* address, std::uint64_t offset, std::uint64_t size) const noexcept;

 private:
  /// 0, or errno's value.
  int write_zeros(std::uint64_t offset, std::uint64_t size) const noexcept;
  /// Has a part be a hole, or does not.
  [[nodiscard]] bool punch(std::uint64_t offset, std::uint64_t size) const noexcept;

  int descriptor_ = -1;
  std::uint64_t device_ = 0;
  std::uint64_t inode_ = 0;
};

/// What systems differ in besides SpillFile's own parts: spill_file_linux.cpp and spill_file_apple.cpp.
namespace spill_system {

/// The least that move_up() gives.
extern const int kLowestDescriptor;
/// A file that never had a name, or -1 and errno: EOPNOTSUPP, EISDIR or EINVAL where there are none such.
[[nodiscard]] int open_nameless(const char* folder) noexcept;
/// Refuses an empty file on a file system that can't hold the heap, and has others be as the heap needs them.
[[nodiscard]] SpillError prepare_empty(int descriptor) noexcept;
/// Refuses a file that is as large as it will be, where parts of it can't be promised room.
[[nodiscard]] SpillError prepare_sized(int descriptor) noexcept;

}  // namespace spill_system

}  // namespace etstream::heap
