// SPDX-License-Identifier: BSD-3-Clause
//
// The library that `etstream run` makes dyld insert before all others on macOS. Large blocks that programs
// ask malloc and its kin for come from the heap, by dyld's interposing. A zone of its own tells the system's
// malloc which blocks these are, so that free() and all other functions that take a block work on them,
// whoever calls. The environment describes the heap, see heap/environment.h.
#include <malloc/malloc.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>

#include "memory/heap/heap_posix.h"
#include "memory/heap/malloc_rules.h"
#include "memory/heap/open_heap_posix.h"
#include "memory/heap/python_arenas_posix.h"

namespace etstream::heap {
namespace {

void* system_memalign(std::size_t alignment, std::size_t size) {
  void* block = nullptr;
  const int failed = ::posix_memalign(&block, std::max(alignment, sizeof(void*)), size);
  if (failed == 0) return block;
  errno = failed;
  return nullptr;
}

std::size_t system_size(void* block) { return ::malloc_size(block); }

}  // namespace

constinit Heap the_heap;
/// dyld does not interpose a library's own calls.
constinit MallocFunctions next_functions{::malloc, ::calloc, ::realloc, ::free, system_memalign, system_size};
constinit std::atomic<std::size_t> served_from{kNever};

namespace {

using Rules = MallocRules<HeapBlocks>;

/// Resizes a block. Resizing to 0 bytes gives the smallest block on this system.
void* resize(void* block, std::size_t size) { return Rules::realloc(block, std::max<std::size_t>(size, 1)); }

void* allocate_pages(std::size_t size) { return Rules::memalign(page_size(), size); }

/// Makes the zone that the system's malloc asks for the owner of a block. Forks have handlers of their own.
void make_zone() {
  static constinit ::malloc_introspection_t introspection{};
  introspection.enumerator = [](::task_t, void*, unsigned, ::vm_address_t, ::memory_reader_t,
                                ::vm_range_recorder_t) -> kern_return_t { return KERN_SUCCESS; };
  introspection.good_size = [](::malloc_zone_t*, std::size_t size) { return size; };
  introspection.check = [](::malloc_zone_t*) -> boolean_t { return 1; };
  introspection.print = [](::malloc_zone_t*, boolean_t) {};
  introspection.log = [](::malloc_zone_t*, void*) {};
  introspection.force_lock = [](::malloc_zone_t*) {};
  introspection.force_unlock = [](::malloc_zone_t*) {};
  introspection.statistics = [](::malloc_zone_t*, ::malloc_statistics_t* out) { *out = {}; };
  introspection.zone_locked = [](::malloc_zone_t*) -> boolean_t { return 0; };
  static constinit ::malloc_zone_t zone{};
  zone.size = [](::malloc_zone_t*, const void* block) {
    return the_heap.owns(block) ? the_heap.size_of_any(block) : 0;
  };
  zone.malloc = [](::malloc_zone_t*, std::size_t size) { return Rules::malloc(size); };
  zone.calloc = [](::malloc_zone_t*, std::size_t count, std::size_t size) {
    return Rules::calloc(count, size);
  };
  zone.valloc = [](::malloc_zone_t*, std::size_t size) { return allocate_pages(size); };
  zone.free = [](::malloc_zone_t*, void* block) { Rules::free(block); };
  zone.realloc = [](::malloc_zone_t*, void* block, std::size_t size) { return resize(block, size); };
  zone.destroy = [](::malloc_zone_t*) {};
  zone.zone_name = "etstream";
  zone.introspect = &introspection;
  zone.version = 6;  // the first with free_definite_size
  zone.memalign = [](::malloc_zone_t*, std::size_t alignment, std::size_t size) {
    return Rules::memalign(alignment, size);
  };
  zone.free_definite_size = [](::malloc_zone_t*, void* block, std::size_t /*size*/) { Rules::free(block); };
  ::malloc_zone_register(&zone);
}

/// Sets everything up, before any code of the program runs.
__attribute__((constructor)) void begin() {
  const std::size_t size = open_heap();
  if (size == kNever) return;
  ::pthread_atfork([] { the_heap.before_fork(); }, [] { the_heap.after_fork_in_parent(); },
                   [] { the_heap.after_fork_in_child(); });
  make_zone();
  served_from.store(size, std::memory_order_release);
  serve_arenas();
}

/// Makes all other libraries and the program call `ours` for `theirs`.
template <class Function>
struct Interposed {
  Function* ours;
  Function* theirs;
};

}  // namespace
}  // namespace etstream::heap

#define ETSTREAM_INTERPOSED(function, ours)                                                               \
  __attribute__((                                                                                         \
      used, section("__DATA,__interpose"))) static const etstream::heap::Interposed<decltype(::function)> \
      interposed_##function {                                                                             \
    ours, ::function                                                                                      \
  }

ETSTREAM_INTERPOSED(malloc, etstream::heap::Rules::malloc);
ETSTREAM_INTERPOSED(calloc, etstream::heap::Rules::calloc);
ETSTREAM_INTERPOSED(realloc, etstream::heap::resize);
ETSTREAM_INTERPOSED(valloc, etstream::heap::allocate_pages);
ETSTREAM_INTERPOSED(aligned_alloc, etstream::heap::Rules::memalign);
ETSTREAM_INTERPOSED(posix_memalign, etstream::heap::Rules::posix_memalign);
