// SPDX-License-Identifier: BSD-3-Clause
//
// The library that `etstream run` has dyld insert before all others on macOS. Large blocks that programs ask
// malloc and its kin for come from the heap, by dyld's interposing; a zone of its own tells the system's
// malloc whose they are, so that free() and all others that take a block work on them, whoever calls. What
// the heap is to be stands in the environment, see heap/environment.h.
#include <malloc/malloc.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "heap/heap_posix.h"
#include "heap/malloc_rules.h"
#include "heap/open_heap_posix.h"
#include "heap/python_arenas_posix.h"

namespace etstream::heap {
namespace {

constinit Heap the_heap;
// The smallest size that the heap serves: none until it is there.
constinit std::atomic<std::size_t> from{kNever};

void* system_memalign(std::size_t alignment, std::size_t size) {
  void* block = nullptr;
  const int failed = ::posix_memalign(&block, std::max(alignment, sizeof(void*)), size);
  if (failed == 0) return block;
  errno = failed;
  return nullptr;
}

std::size_t system_size(void* block) { return ::malloc_size(block); }

/// A library's own calls are not interposed.
constexpr MallocFunctions kSystem{::malloc, ::calloc, ::realloc, ::free, system_memalign, system_size};

struct Blocks {
  static Heap& heap() { return the_heap; }
  static const MallocFunctions& next() { return kSystem; }
  static bool is_large(std::size_t size) { return size >= from.load(std::memory_order_acquire); }

  static void* allocate(std::size_t size, std::size_t alignment, bool zeroed) {
    if (the_heap.serves(size, alignment)) return the_heap.allocate(size, alignment, zeroed);
    if (zeroed) return ::calloc(1, size);
    return alignment > kUsualAlignment ? system_memalign(alignment, size) : ::malloc(size);
  }

  static bool owns(const void* block) { return the_heap.owns(block); }
  static bool resize(void* block, std::size_t size) { return is_large(size) && the_heap.resize(block, size); }
  static std::size_t usable_size(void* block) { return the_heap.usable_size(block); }
  static void release(void* block) { the_heap.release(block); }
};

using Rules = MallocRules<Blocks>;

/// Of no bytes this system makes the smallest block.
void* resize(void* block, std::size_t size) { return Rules::realloc(block, std::max<std::size_t>(size, 1)); }

void* allocate_pages(std::size_t size) { return Rules::memalign(page_size(), size); }

/// What the system's malloc asks of who has a block, and of the zone itself. Forks have handlers of their
/// own.
struct Zone {
  static std::size_t size(::malloc_zone_t* /*zone*/, const void* block) {
    return the_heap.owns(block) ? the_heap.size_of_any(block) : 0;
  }
  static void* malloc(::malloc_zone_t* /*zone*/, std::size_t size) { return Rules::malloc(size); }
  static void* calloc(::malloc_zone_t* /*zone*/, std::size_t count, std::size_t size) {
    return Rules::calloc(count, size);
  }
  static void* valloc(::malloc_zone_t* /*zone*/, std::size_t size) { return allocate_pages(size); }
  static void free(::malloc_zone_t* /*zone*/, void* block) { Rules::free(block); }
  static void* realloc(::malloc_zone_t* /*zone*/, void* block, std::size_t size) {
    return resize(block, size);
  }
  static void* memalign(::malloc_zone_t* /*zone*/, std::size_t alignment, std::size_t size) {
    return Rules::memalign(alignment, size);
  }
  static void free_definite_size(::malloc_zone_t* /*zone*/, void* block, std::size_t /*size*/) {
    Rules::free(block);
  }
  static void destroy(::malloc_zone_t* /*zone*/) {}

  static kern_return_t enumerate(::task_t /*task*/, void* /*context*/, unsigned /*kind*/,
                                 ::vm_address_t /*zone*/, ::memory_reader_t /*reader*/,
                                 ::vm_range_recorder_t /*recorder*/) {
    return KERN_SUCCESS;
  }
  static std::size_t good_size(::malloc_zone_t* /*zone*/, std::size_t size) { return size; }
  static boolean_t check(::malloc_zone_t* /*zone*/) { return 1; }
  static void print(::malloc_zone_t* /*zone*/, boolean_t /*verbose*/) {}
  static void log(::malloc_zone_t* /*zone*/, void* /*address*/) {}
  static void lock(::malloc_zone_t* /*zone*/) {}
  static void unlock(::malloc_zone_t* /*zone*/) {}
  static void statistics(::malloc_zone_t* /*zone*/, ::malloc_statistics_t* out) { *out = {}; }
  static boolean_t is_locked(::malloc_zone_t* /*zone*/) { return 0; }

  static void make() {
    static constinit ::malloc_introspection_t introspection{};
    introspection.enumerator = enumerate;
    introspection.good_size = good_size;
    introspection.check = check;
    introspection.print = print;
    introspection.log = log;
    introspection.force_lock = lock;
    introspection.force_unlock = unlock;
    introspection.statistics = statistics;
    introspection.zone_locked = is_locked;
    static constinit ::malloc_zone_t zone{};
    zone.size = size;
    zone.malloc = malloc;
    zone.calloc = calloc;
    zone.valloc = valloc;
    zone.free = free;
    zone.realloc = realloc;
    zone.destroy = destroy;
    zone.zone_name = "etstream";
    zone.introspect = &introspection;
    zone.version = 6;  // that which has the last of these
    zone.memalign = memalign;
    zone.free_definite_size = free_definite_size;
    ::malloc_zone_register(&zone);
  }
};

/// Before any code of the program runs.
__attribute__((constructor)) void begin() {
  const std::size_t size = open_heap(the_heap);
  if (size == kNever) return;
  ::pthread_atfork([] { the_heap.before_fork(); }, [] { the_heap.after_fork_in_parent(); },
                   [] { the_heap.after_fork_in_child(); });
  Zone::make();
  from.store(size, std::memory_order_release);
  PythonArenas<Blocks>::serve();
}

/// dyld has all other libraries and the program call `ours` for `theirs`.
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
