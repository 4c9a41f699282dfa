// SPDX-License-Identifier: BSD-3-Clause
//
// The library that `etstream run` makes the system load before all others: malloc and its kin. They give
// large blocks from the heap and leave all others to the functions that served them before. The environment
// describes the heap, see heap/statistics_posix.h.
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "memory/heap/heap_posix.h"
#include "memory/heap/malloc_rules_posix.h"
#include "memory/heap/spill_file.h"
#include "memory/heap/statistics_posix.h"

namespace etstream::heap {

constinit Heap the_heap;
constinit MallocFunctions next_functions;
// Until begin() has set everything up, Blocks::allocate() is asked for every size, and calls begin().
constinit std::atomic<std::size_t> served_from{0};

namespace {

/// Blocks for begin(), which looks up the next functions. They are never freed.
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

void begin_child() {
  the_heap.after_fork_in_child();
  report_use();
}

/// Keeps glibc from trimming its own heap. glibc trims it when over 128 KiB are free at its end, and raises
/// that threshold, up to 64 MiB, when mapped blocks are freed. If this library serves all such blocks, glibc
/// would trim and grow its heap all the time.
void keep_free_memory([[maybe_unused]] std::size_t smallest_served) {
#ifdef __GLIBC__
  constexpr int kMostKept = 8 << 20;
  constexpr std::size_t kSmallestMapped = 128 << 10;
  if (smallest_served <= kSmallestMapped && std::getenv("MALLOC_TRIM_THRESHOLD_") == nullptr) {
    ::mallopt(M_TRIM_THRESHOLD, kMostKept);
  }
#endif
}

/// Opens the heap as the environment says, or reports why it can't be opened. Returns the smallest size that
/// it serves, or kNever if it is not open.
std::size_t open_heap() {
  const auto number = [](const char* name, std::uint64_t otherwise) {
    const char* const text = std::getenv(name);
    if (text != nullptr) std::from_chars(text, text + std::strlen(text), otherwise);
    return otherwise;
  };
  const char* const folder = std::getenv(kFolderVariable);
  if (folder == nullptr) return kNever;
  const std::uint64_t limit = number(kLimitVariable, 0);
  const SpillError failed = the_heap.open({folder, limit});
  if (failed) {
    const bool has_limit = failed.limit.name != nullptr;
    say("large blocks of process ", static_cast<std::uint64_t>(::getpid()), " stay in memory, not in ",
        folder, ": ", failed.reason != nullptr ? failed.reason : reason_of(failed.code),
        has_limit ? " (" : "", has_limit ? failed.limit.name : "", has_limit ? ")" : "");
    return kNever;
  }
  if (limit != 0 && !can_keep_limit()) {
    say("the limit of process ", static_cast<std::uint64_t>(::getpid()),
        " is not kept: /proc does not tell what it has in memory");
  }
  return std::max<std::size_t>(number(kFromVariable, kDefaultFrom), kGranule);
}

/// Returns the smallest size that the heap is going to serve.
std::size_t begin_heap() {
  const std::size_t size = open_heap();
  if (size == kNever) return kNever;
  ::pthread_atfork([] { the_heap.before_fork(); }, [] { the_heap.after_fork_in_parent(); }, begin_child);
  report_use();
  keep_free_memory(size);
  return size;
}

constinit std::atomic<bool> is_begun{false};
constinit std::atomic<pthread_t> beginner{};

/// Sets everything up, once; other threads wait. Returns false if this thread is doing so already.
bool begin() {
  if (is_begun.exchange(true)) {
    while (served_from.load(std::memory_order_acquire) == 0) {
      if (beginner.load() == ::pthread_self()) return false;
    }
    return true;
  }
  const SignalsBlocked signals;
  beginner.store(::pthread_self());
  find_next(next_functions.malloc, "malloc");
  find_next(next_functions.calloc, "calloc");
  find_next(next_functions.realloc, "realloc");
  find_next(next_functions.free, "free");
  find_next(next_functions.memalign, "memalign");
  find_next(next_functions.malloc_usable_size, "malloc_usable_size");
  served_from.store(kNever, std::memory_order_release);  // all that follows may allocate
  served_from.store(begin_heap(), std::memory_order_release);
  return true;
}

/// The blocks of the heap, and the first blocks.
struct Blocks : HeapBlocks {
  static void* allocate(std::size_t size, std::size_t alignment, bool zeroed) {
    if (served_from.load(std::memory_order_acquire) == 0 && !begin()) return first_blocks.allocate(size);
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

/// Runs when all objects that the program begins with are loaded, before any code of the program.
__attribute__((constructor)) void serve_python() {
  if (served_from.load(std::memory_order_acquire) == 0) begin();
  if (served_from.load(std::memory_order_acquire) != kNever) serve_arenas();
}

}  // namespace

extern "C" {
#pragma GCC visibility push(default)

void* malloc(std::size_t size) noexcept { return Rules::malloc(size); }
void free(void* block) noexcept { Rules::free(block); }
void* calloc(std::size_t count, std::size_t size) noexcept { return Rules::calloc(count, size); }
void* realloc(void* block, std::size_t size) noexcept { return Rules::realloc(block, size); }
void* reallocarray(void* block, std::size_t count, std::size_t size) noexcept {
  return Rules::reallocarray(block, count, size);
}
void* memalign(std::size_t alignment, std::size_t size) noexcept { return Rules::memalign(alignment, size); }
void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  return Rules::memalign(alignment, size);
}
int posix_memalign(void** block, std::size_t alignment, std::size_t size) noexcept {
  return Rules::posix_memalign(block, alignment, size);
}
void* valloc(std::size_t size) noexcept { return Rules::memalign(page_size(), size); }
void* pvalloc(std::size_t size) noexcept {
  const std::size_t page = page_size();
  if (size > kNever - page) {
    errno = ENOMEM;
    return nullptr;
  }
  return Rules::memalign(page, (size + page - 1) & ~(page - 1));
}
std::size_t malloc_usable_size(void* block) noexcept { return Rules::malloc_usable_size(block); }
int madvise(void* address, std::size_t size, int advice) noexcept {
  return the_heap.madvise(address, size, advice);
}

/// Returns whether this heap serves blocks. The Python module asks this before it opens a heap of its own.
bool etstream_heap_serves() noexcept { return served_from.load(std::memory_order_acquire) != kNever; }

#pragma GCC visibility pop
}

}  // namespace etstream::heap
