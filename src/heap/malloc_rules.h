// SPDX-License-Identifier: BSD-3-Clause
//
// What malloc and its kin do where large blocks come from a heap and all others from the functions that were
// there before.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <limits>

namespace etstream::heap {

/// Larger than any block.
inline constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();
inline constexpr std::size_t kUsualAlignment = alignof(std::max_align_t);

/// Those that were there before.
struct MallocFunctions {
  void* (*malloc)(std::size_t) = nullptr;
  void* (*calloc)(std::size_t, std::size_t) = nullptr;
  void* (*realloc)(void*, std::size_t) = nullptr;
  void (*free)(void*) = nullptr;
  void* (*memalign)(std::size_t, std::size_t) = nullptr;
  std::size_t (*malloc_usable_size)(void*) = nullptr;
};

/// The blocks of a process that has a heap. `Place` has, as static functions:
/// - heap(): the Heap
/// - next(): a MallocFunctions, which need not be set while is_large() is true of every size
/// - is_large(size): whether a new block is to come from the heap
template <class Place>
struct HeapBlocks : Place {
  /// Null, with errno set, where there is no room.
  static void* allocate(std::size_t size, std::size_t alignment, bool zeroed) {
    if (Place::is_large(size) && Place::heap().serves(size, alignment)) {
      return Place::heap().allocate(size, alignment, zeroed);
    }
    if (zeroed) return Place::next().calloc(1, size);
    return alignment > kUsualAlignment ? Place::next().memalign(alignment, size) : Place::next().malloc(size);
  }

  /// Whether the functions below, not those of next(), take the block.
  static bool owns(const void* block) { return Place::heap().owns(block); }
  /// Makes the block that large where it is, or returns false.
  static bool resize(void* block, std::size_t size) {
    return Place::is_large(size) && Place::heap().resize(block, size);
  }
  static std::size_t usable_size(void* block) { return Place::heap().usable_size(block); }
  static void release(void* block) { Place::heap().release(block); }
};

/// `Blocks` is a HeapBlocks, or has the same functions.
template <class Blocks>
struct MallocRules {
  static void* malloc(std::size_t size) noexcept {
    return Blocks::is_large(size) ? Blocks::allocate(size, kUsualAlignment, false)
                                  : Blocks::next().malloc(size);
  }

  static void* calloc(std::size_t count, std::size_t size) noexcept {
    std::size_t bytes = 0;
    if (__builtin_mul_overflow(count, size, &bytes)) return refuse();
    return Blocks::is_large(bytes) ? Blocks::allocate(bytes, kUsualAlignment, true)
                                   : Blocks::next().calloc(1, bytes);
  }

  static void* realloc(void* block, std::size_t size) noexcept {
    if (block == nullptr) return malloc(size);
    const bool is_ours = Blocks::owns(block);
    if (!is_ours && !Blocks::is_large(size)) return Blocks::next().realloc(block, size);
    if (size == 0) {
      free(block);
      return nullptr;
    }
    if (is_ours && Blocks::resize(block, size)) return block;
    void* const moved = malloc(size);
    if (moved == nullptr) return nullptr;
    std::memcpy(moved, block, std::min(size, malloc_usable_size(block)));
    free(block);
    return moved;
  }

  static void* reallocarray(void* block, std::size_t count, std::size_t size) noexcept {
    std::size_t bytes = 0;
    if (__builtin_mul_overflow(count, size, &bytes)) return refuse();
    return realloc(block, bytes);
  }

  static void free(void* block) noexcept {
    if (Blocks::owns(block)) {
      Blocks::release(block);
    } else {
      Blocks::next().free(block);
    }
  }

  static void* memalign(std::size_t alignment, std::size_t size) noexcept {
    return Blocks::is_large(size) ? Blocks::allocate(size, std::max(alignment, kUsualAlignment), false)
                                  : Blocks::next().memalign(alignment, size);
  }

  static int posix_memalign(void** block, std::size_t alignment, std::size_t size) noexcept {
    const bool is_power_of_two = alignment != 0 && (alignment & (alignment - 1)) == 0;
    if (!is_power_of_two || alignment % sizeof(void*) != 0) return EINVAL;
    const int before = errno;
    void* const made = memalign(alignment, size);
    errno = before;
    if (made == nullptr) return ENOMEM;
    *block = made;
    return 0;
  }

  static std::size_t malloc_usable_size(void* block) noexcept {
    if (block == nullptr) return 0;
    return Blocks::owns(block) ? Blocks::usable_size(block) : Blocks::next().malloc_usable_size(block);
  }

 private:
  static void* refuse() noexcept {
    errno = ENOMEM;
    return nullptr;
  }
};

}  // namespace etstream::heap
