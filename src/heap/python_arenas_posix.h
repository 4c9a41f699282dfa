// SPDX-License-Identifier: BSD-3-Clause
//
// CPython's small objects lie in arenas of 256 KiB or 1 MiB that it maps itself, so that malloc never sees
// them. Its C API lets them come from elsewhere (PyObject_SetArenaAllocator, since 3.4).
#pragma once

#include <dlfcn.h>

#include <cstddef>

#include "heap/heap_posix.h"

namespace etstream::heap {

/// PyObjectArenaAllocator of CPython's C API.
struct ArenaAllocator {
  void* context = nullptr;
  void* (*allocate)(void* context, std::size_t size) = nullptr;
  void (*release)(void* context, void* arena, std::size_t size) = nullptr;
};

/// `Blocks` is that of MallocRules, and has the heap as heap().
template <class Blocks>
class PythonArenas {
 public:
  /// Has new arenas be blocks of the heap for as long as they are large, if this process is Python's.
  /// Those that there are stay. Python must not have begun yet, or else the caller holds the GIL.
  static void serve() noexcept {
    if (python.allocate != nullptr) return;
    using Access = void (*)(ArenaAllocator*);
    const auto get = reinterpret_cast<Access>(::dlsym(RTLD_DEFAULT, "PyObject_GetArenaAllocator"));
    const auto set = reinterpret_cast<Access>(::dlsym(RTLD_DEFAULT, "PyObject_SetArenaAllocator"));
    if (get == nullptr || set == nullptr) return;
    get(&python);
    ArenaAllocator ours{nullptr, allocate, release};
    set(&ours);
  }

 private:
  static void* allocate(void* /*context*/, std::size_t size) noexcept {
    if (Blocks::is_large(size) && Blocks::heap().serves(size, kGranule)) {
      if (void* const arena = Blocks::heap().allocate(size, kGranule, false)) return arena;
    }
    return python.allocate(python.context, size);
  }

  static void release(void* /*context*/, void* arena, std::size_t size) noexcept {
    if (Blocks::heap().owns(arena)) {
      Blocks::heap().release(arena);
    } else {
      python.release(python.context, arena, size);
    }
  }

  static constinit inline ArenaAllocator python{};
};

}  // namespace etstream::heap
