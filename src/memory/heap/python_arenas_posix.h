// SPDX-License-Identifier: BSD-3-Clause
//
// CPython's small objects lie in arenas of 256 KiB or 1 MiB that it maps itself, so that malloc never sees
// them. Its C API lets them come from elsewhere (PyObject_SetArenaAllocator, since 3.4).
#pragma once

#include <dlfcn.h>

#include <cstddef>

#include "memory/heap/malloc_rules.h"

namespace etstream::heap {

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

}  // namespace etstream::heap
