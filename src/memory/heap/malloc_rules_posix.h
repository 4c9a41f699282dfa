// SPDX-License-Identifier: BSD-3-Clause
//
// malloc and its kin. Large blocks come from the heap, and all others from the functions that were there
// before.
//
// CPython's small objects lie in arenas of 256 KiB or 1 MiB that it maps itself, so that malloc never sees
// them. Its C API lets them come from elsewhere (PyObject_SetArenaAllocator, since 3.4).
//
// The counts of this process's heap, where a process above reads them: one that runs `etstream run --report`
// or `etstream profile`.
#pragma once

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <limits>

#include "memory/heap/heap_posix.h"
#include "memory/heap/statistics_posix.h"

namespace etstream::heap {

/// A size larger than any block: nothing is served.
inline constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();
inline constexpr std::size_t kUsualAlignment = alignof(std::max_align_t);

/// The functions that serve all other blocks.
struct MallocFunctions {
  void* (*malloc)(std::size_t) = nullptr;
  void* (*calloc)(std::size_t, std::size_t) = nullptr;
  void* (*realloc)(void*, std::size_t) = nullptr;
  void (*free)(void*) = nullptr;
  void* (*memalign)(std::size_t, std::size_t) = nullptr;
  std::size_t (*malloc_usable_size)(void*) = nullptr;
};

// The library that serves a process's blocks defines these:
extern Heap the_heap;
extern MallocFunctions next_functions;
/// The smallest size that comes from the heap now. If it is 0, Blocks::allocate() is asked for every size.
extern std::atomic<std::size_t> served_from;

/// The blocks of the heap.
struct HeapBlocks {
  static bool is_large(std::size_t size) { return size >= served_from.load(std::memory_order_acquire); }
  /// Returns null, with errno set, if there is no room.
  static void* allocate(std::size_t size, std::size_t alignment, bool zeroed) {
    if (is_large(size) && the_heap.serves(size, alignment)) {
      const int before = errno;
      void* const block = the_heap.allocate(size, alignment, zeroed);
      if (block != nullptr || errno == ENOMEM) return block;
      errno = before;
    }
    if (zeroed) return next_functions.calloc(1, size);
    return alignment > kUsualAlignment ? next_functions.memalign(alignment, size)
                                       : next_functions.malloc(size);
  }
  /// Returns whether the block is for the functions below, not for next_functions.
  static bool owns(const void* block) { return the_heap.owns(block); }
  /// Makes the block that large in its place, or returns false.
  static bool resize(void* block, std::size_t size) { return is_large(size) && the_heap.resize(block, size); }
  static std::size_t usable_size(void* block) { return the_heap.usable_size(block); }
  static void release(void* block) { the_heap.release(block); }
};

/// `Blocks` is a HeapBlocks, or has the same functions.
template <class Blocks>
struct MallocRules {
  static void* malloc(std::size_t size) noexcept {
    return Blocks::is_large(size) ? Blocks::allocate(size, kUsualAlignment, false)
                                  : next_functions.malloc(size);
  }

  static void* calloc(std::size_t count, std::size_t size) noexcept {
    std::size_t bytes = 0;
    if (__builtin_mul_overflow(count, size, &bytes)) return refuse();
    return Blocks::is_large(bytes) ? Blocks::allocate(bytes, kUsualAlignment, true)
                                   : next_functions.calloc(1, bytes);
  }

  static void* realloc(void* block, std::size_t size) noexcept {
    if (block == nullptr) return malloc(size);
    const bool is_ours = Blocks::owns(block);
    if (!is_ours && !Blocks::is_large(size)) return next_functions.realloc(block, size);
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
      next_functions.free(block);
    }
  }

  static void* memalign(std::size_t alignment, std::size_t size) noexcept {
    return Blocks::is_large(size) ? Blocks::allocate(size, std::max(alignment, kUsualAlignment), false)
                                  : next_functions.memalign(alignment, size);
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
    return Blocks::owns(block) ? Blocks::usable_size(block) : next_functions.malloc_usable_size(block);
  }

 private:
  static void* refuse() noexcept {
    errno = ENOMEM;
    return nullptr;
  }
};

/// PyObjectArenaAllocator of CPython's C API.
struct ArenaAllocator {
  void* context = nullptr;
  void* (*allocate)(void* context, std::size_t size) = nullptr;
  void (*release)(void* context, void* arena, std::size_t size) = nullptr;
};

/// The arenas that Python has without the heap.
inline constinit ArenaAllocator python_arenas{};

/// Makes new arenas blocks of the heap while they are large, if this is a process of Python's. Older arenas
/// stay. Call it before Python begins, or with the GIL held. Once is enough.
inline void serve_arenas() noexcept {
  if (python_arenas.allocate != nullptr) return;
  using Access = void (*)(ArenaAllocator*);
  const auto get = reinterpret_cast<Access>(::dlsym(RTLD_DEFAULT, "PyObject_GetArenaAllocator"));
  const auto set = reinterpret_cast<Access>(::dlsym(RTLD_DEFAULT, "PyObject_SetArenaAllocator"));
  if (get == nullptr || set == nullptr) return;
  get(&python_arenas);
  ArenaAllocator ours;
  ours.allocate = [](void* /*context*/, std::size_t size) -> void* {
    if (HeapBlocks::is_large(size) && the_heap.serves(size, kGranule)) {
      if (void* const arena = the_heap.allocate(size, kGranule, false)) return arena;
    }
    return python_arenas.allocate(python_arenas.context, size);
  };
  ours.release = [](void* /*context*/, void* arena, std::size_t size) {
    if (the_heap.owns(arena)) {
      the_heap.release(arena);
    } else {
      python_arenas.release(python_arenas.context, arena, size);
    }
  };
  set(&ours);
}

/// Puts the heap's counts into the memory that the environment names, if it names some.
inline void report_use() noexcept {
  const int file = open_tree_use();
  if (file < 0) return;
  void* const shared = ::mmap(nullptr, sizeof(TreeUse), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  if (shared == MAP_FAILED) return;
  TreeUse& tree = *static_cast<TreeUse*>(shared);
  if (ProcessUse* const use = tree.place_of(::getpid())) the_heap.report_to(*use, tree.large);
}

}  // namespace etstream::heap
