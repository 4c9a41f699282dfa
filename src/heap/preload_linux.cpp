// SPDX-License-Identifier: BSD-3-Clause
//
// The library that `etstream run` has loaded before all others: malloc and its kin, which give large blocks
// from the heap and leave all others to whoever served them before. What the heap is to be stands in the
// environment, see heap/environment.h.
#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "heap/environment.h"
#include "heap/heap_posix.h"
#include "heap/in_use_posix.h"
#include "heap/malloc_rules.h"
#include "heap/open_heap_posix.h"
#include "heap/python_arenas_posix.h"

namespace etstream::heap {
namespace {

constinit Heap the_heap;
constinit MallocFunctions next;  // that come after this library
// The smallest size that the heap serves. 0 until all is set up, so that the first call comes here whatever
// its size.
constinit std::atomic<std::size_t> from{0};

/// What is asked for while the next functions are looked up; never freed.
struct FirstBlocks {
  alignas(kUsualAlignment) std::byte bytes[16 << 10] = {};
  std::atomic<std::size_t> used{0};

  void* allocate(std::size_t size) noexcept {
    const std::size_t room = (size + kUsualAlignment - 1) & ~(kUsualAlignment - 1);
    const std::size_t begin = used.fetch_add(room);
    return begin + room <= sizeof(bytes) ? bytes + begin : nullptr;
  }
  [[nodiscard]] bool owns(const void* block) const noexcept {
    return reinterpret_cast<std::uintptr_t>(block) - reinterpret_cast<std::uintptr_t>(bytes) < sizeof(bytes);
  }
};
constinit FirstBlocks first_blocks;

template <class Function>
void find_next(Function& function, const char* name) {
  function = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

/// Tells of this process in the memory that its environment names, if it does.
void report_use() {
  const char* const path = std::getenv(kReportVariable);
  if (path == nullptr) return;
  const int file = ::open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return;
  void* const shared = ::mmap(nullptr, sizeof(TreeUse), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  if (shared == MAP_FAILED) return;
  if (ProcessUse* const use = static_cast<TreeUse*>(shared)->place_of(::getpid())) the_heap.report_to(*use);
}

void begin_child() {
  the_heap.after_fork_in_child();
  report_use();
}

/// glibc gives the system back what is free at the end of its own heap when that is over 128 KiB, and raises
/// this, up to 64 MiB, when mapped blocks are freed. Where all of those are served here, it would shrink and
/// grow its heap all the time.
void keep_free_memory([[maybe_unused]] std::size_t smallest_served) {
#ifdef __GLIBC__
  constexpr int kMostKept = 8 << 20;
  constexpr std::size_t kSmallestMapped = 128 << 10;
  if (smallest_served <= kSmallestMapped && std::getenv("MALLOC_TRIM_THRESHOLD_") == nullptr) {
    ::mallopt(M_TRIM_THRESHOLD, kMostKept);
  }
#endif
}

/// The smallest size that the heap is going to serve.
std::size_t begin_heap() {
  const std::size_t size = open_heap(the_heap);
  if (size == kNever) return kNever;
  ::pthread_atfork([] { the_heap.before_fork(); }, [] { the_heap.after_fork_in_parent(); }, begin_child);
  report_use();
  keep_free_memory(size);
  return size;
}

constinit std::atomic<bool> is_begun{false};
constinit std::atomic<pthread_t> beginner{};

/// Once; what the thread that does it allocates meanwhile comes from `first_blocks`, other threads wait.
bool begin() {
  if (is_begun.exchange(true)) {
    while (from.load(std::memory_order_acquire) == 0) {
      if (beginner.load() == ::pthread_self()) return false;
    }
    return true;
  }
  const SignalsBlocked signals;
  beginner.store(::pthread_self());
  find_next(next.malloc, "malloc");
  find_next(next.calloc, "calloc");
  find_next(next.realloc, "realloc");
  find_next(next.free, "free");
  find_next(next.memalign, "memalign");
  find_next(next.malloc_usable_size, "malloc_usable_size");
  from.store(kNever, std::memory_order_release);  // all that follows may allocate
  from.store(begin_heap(), std::memory_order_release);
  return true;
}

struct Place {
  static Heap& heap() { return the_heap; }
  static const MallocFunctions& next() { return heap::next; }
  /// Also true of every size before begin() has run.
  static bool is_large(std::size_t size) { return size >= from.load(std::memory_order_acquire); }
};

/// Those of the heap, and the first blocks.
struct Blocks : HeapBlocks<Place> {
  static void* allocate(std::size_t size, std::size_t alignment, bool zeroed) {
    if (from.load(std::memory_order_acquire) == 0 && !begin()) return first_blocks.allocate(size);
    return HeapBlocks::allocate(size, alignment, zeroed);
  }
  static bool owns(const void* block) { return the_heap.owns(block) || first_blocks.owns(block); }
  static bool resize(void* block, std::size_t size) {
    return the_heap.owns(block) && HeapBlocks::resize(block, size);
  }
  static std::size_t usable_size(void* block) {
    if (the_heap.owns(block)) return HeapBlocks::usable_size(block);
    return static_cast<std::size_t>(first_blocks.bytes + sizeof(first_blocks.bytes) -
                                    static_cast<std::byte*>(block));
  }
  static void release(void* block) {
    if (the_heap.owns(block)) HeapBlocks::release(block);
  }
};

using Rules = MallocRules<Blocks>;

/// When all objects that the program begins with are loaded, before any of its code runs.
__attribute__((constructor)) void serve_python() {
  if (from.load(std::memory_order_acquire) == 0) begin();
  if (from.load(std::memory_order_acquire) != kNever) PythonArenas<Blocks>::serve();
}

}  // namespace
}  // namespace etstream::heap

#define ETSTREAM_EXPORTED __attribute__((visibility("default")))

extern "C" {

ETSTREAM_EXPORTED void* malloc(std::size_t size) noexcept { return etstream::heap::Rules::malloc(size); }

ETSTREAM_EXPORTED void free(void* block) noexcept { etstream::heap::Rules::free(block); }

ETSTREAM_EXPORTED void* calloc(std::size_t count, std::size_t size) noexcept {
  return etstream::heap::Rules::calloc(count, size);
}

ETSTREAM_EXPORTED void* realloc(void* block, std::size_t size) noexcept {
  return etstream::heap::Rules::realloc(block, size);
}

ETSTREAM_EXPORTED void* reallocarray(void* block, std::size_t count, std::size_t size) noexcept {
  return etstream::heap::Rules::reallocarray(block, count, size);
}

ETSTREAM_EXPORTED void* memalign(std::size_t alignment, std::size_t size) noexcept {
  return etstream::heap::Rules::memalign(alignment, size);
}

ETSTREAM_EXPORTED void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  return etstream::heap::Rules::memalign(alignment, size);
}

ETSTREAM_EXPORTED int posix_memalign(void** block, std::size_t alignment, std::size_t size) noexcept {
  return etstream::heap::Rules::posix_memalign(block, alignment, size);
}

ETSTREAM_EXPORTED void* valloc(std::size_t size) noexcept {
  return etstream::heap::Rules::memalign(etstream::heap::page_size(), size);
}

ETSTREAM_EXPORTED void* pvalloc(std::size_t size) noexcept {
  using namespace etstream::heap;
  const std::size_t page = page_size();
  if (size > kNever - page) {
    errno = ENOMEM;
    return nullptr;
  }
  return Rules::memalign(page, (size + page - 1) & ~(page - 1));
}

ETSTREAM_EXPORTED std::size_t malloc_usable_size(void* block) noexcept {
  return etstream::heap::Rules::malloc_usable_size(block);
}

/// For those that would have a heap in a process that has this one: whether it serves blocks.
ETSTREAM_EXPORTED bool etstream_heap_serves() noexcept {
  using namespace etstream::heap;
  return from.load(std::memory_order_acquire) != kNever;
}
}
