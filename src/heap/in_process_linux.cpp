// SPDX-License-Identifier: BSD-3-Clause
#include "heap/in_process_linux.h"

#include <dlfcn.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <span>

#include "base/text.h"
#include "base/try.h"
#include "heap/heap_posix.h"
#include "heap/import_tables_linux.h"
#include "heap/malloc_rules.h"
#include "heap/open_object_linux.h"
#include "heap/python_arenas_posix.h"
#include "heap/say.h"
#include "heap/spill_folder.h"
#include "io/descriptor_posix.h"

namespace etstream::heap {
namespace {

constinit Heap the_heap;
constinit MallocFunctions others;
/// The smallest size that is served now.
constinit std::atomic<std::size_t> served_from{kNever};

struct Blocks {
  static Heap& heap() { return the_heap; }
  static const MallocFunctions& next() { return others; }
  static bool is_large(std::size_t size) { return size >= served_from.load(std::memory_order_relaxed); }

  static void* allocate(std::size_t size, std::size_t alignment, bool zeroed) {
    if (the_heap.serves(size, alignment)) return the_heap.allocate(size, alignment, zeroed);
    if (zeroed) return others.calloc(1, size);
    return alignment > kUsualAlignment ? others.memalign(alignment, size) : others.malloc(size);
  }

  static bool owns(const void* block) { return the_heap.owns(block); }
  /// Also after the last use: a large block is not to move into memory then.
  static bool resize(void* block, std::size_t size) {
    return size >= kGranule && the_heap.resize(block, size);
  }
  static std::size_t usable_size(void* block) { return the_heap.usable_size(block); }
  static void release(void* block) { the_heap.release(block); }
};

using Rules = MallocRules<Blocks>;

void* stand_in_dlopen(const char* file, int mode) noexcept;
void* stand_in_dlmopen(Lmid_t space, const char* file, int mode) noexcept;

template <class Function>
void* address_of(Function* function) {
  return reinterpret_cast<void*>(function);
}

/// Who frees, and who loads objects that free, comes first: and of those that allocate none leads here
/// before.
enum : std::size_t { kFree, kRealloc, kReallocArray, kUsableSize, kOpen, kOpenInSpace, kLasting };
constexpr std::size_t kImports = kLasting + 5;

std::array<Import, kImports> all_imports() {
  std::array<Import, kImports> made{};
  made[kFree] = {"free", address_of(Rules::free)};
  made[kRealloc] = {"realloc", address_of(Rules::realloc)};
  made[kReallocArray] = {"reallocarray", address_of(Rules::reallocarray)};
  made[kUsableSize] = {"malloc_usable_size", address_of(Rules::malloc_usable_size)};
  made[kOpen] = {"dlopen", address_of(stand_in_dlopen)};
  made[kOpenInSpace] = {"dlmopen", address_of(stand_in_dlmopen)};
  made[kLasting] = {"malloc", address_of(Rules::malloc), true};
  made[kLasting + 1] = {"calloc", address_of(Rules::calloc), true};
  made[kLasting + 2] = {"memalign", address_of(Rules::memalign), true};
  made[kLasting + 3] = {"aligned_alloc", address_of(Rules::memalign), true};
  made[kLasting + 4] = {"posix_memalign", address_of(Rules::posix_memalign), true};
  return made;
}

constinit std::array<Import, kImports> imports{};
constinit OpenFunctions open_functions;

std::span<const Import> lasting() { return std::span(imports).first<kLasting>(); }
std::span<const Import> allocating() { return std::span(imports).subspan<kLasting>(); }

/// Has objects that were loaded by now call what stands in.
void learn_of_new_objects() {
  const bool is_served = served_from.load() != kNever;
  if (point_new_imports(is_served ? std::span<const Import>(imports) : lasting()) != 0) {
    say("a library that was loaded can't be changed to free large blocks");
  }
}

void* stand_in_dlopen(const char* file, int mode) noexcept {
  void* const object = open_object(open_functions, __builtin_return_address(0), file, mode);
  if (object != nullptr) learn_of_new_objects();
  return object;
}

void* stand_in_dlmopen(Lmid_t space, const char* file, int mode) noexcept {
  void* const object = open_functions.in_space(space, file, mode);
  if (object != nullptr) learn_of_new_objects();
  return object;
}

template <class Function>
void set(Function& function, std::size_t import) {
  function = reinterpret_cast<Function>(imports[import].function);
}

/// Once: finds the functions that are stood in for.
Result<void> find_functions() {
  if (others.malloc != nullptr) return {};
  auto found = all_imports();
  for (Import& import : found) {
    if (!find(import)) {
      return make_error(ErrorCode::kUnsupported, "this process has no function {}()", import.name);
    }
  }
  imports = found;
  set(others.calloc, kLasting + 1);
  set(others.realloc, kRealloc);
  set(others.free, kFree);
  set(others.memalign, kLasting + 2);
  set(others.malloc_usable_size, kUsableSize);
  set(open_functions.open, kOpen);
  set(open_functions.in_space, kOpenInSpace);
  set(others.malloc, kLasting);
  return {};
}

/// What stands in must stay loaded.
void stay_loaded() {
  ::Dl_info found{};
  if (::dladdr(&the_heap, &found) != 0) {
    static_cast<void>(::dlopen(found.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE));
  }
}

// For what follows.
constinit pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
constinit std::size_t uses = 0;
constinit char* the_folder = nullptr;
constinit std::uint64_t the_limit = 0;

class Locked {
 public:
  Locked() { ::pthread_mutex_lock(&lock); }
  ~Locked() { ::pthread_mutex_unlock(&lock); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
};

void before_fork() { the_heap.before_fork(); }

void after_fork_in_parent() { the_heap.after_fork_in_parent(); }

void after_fork_in_child() {
  the_heap.after_fork_in_child();
  // Another thread may have held it, while it waited for the loader or the loader for it.
  ::pthread_mutex_init(&lock, nullptr);
}

Result<void> use_folder(const std::string& folder, std::uint64_t limit) {
  const bool is_first = the_folder == nullptr;
  ETSTREAM_ASSIGN(const std::string whole, spill_folder(folder));
  if (!is_first && limit == the_limit && whole == the_folder) return {};
  std::unique_ptr<char, decltype(&std::free)> lasting(::strdup(whole.c_str()), std::free);
  const HeapOptions options{lasting.get(), limit};
  if (const SpillError failed = is_first ? the_heap.open(options) : the_heap.reopen(options)) {
    return cannot_spill_to(folder.empty() ? whole : folder, failed);
  }
  if (is_first) {
    ::pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    stay_loaded();
  }
  std::free(std::exchange(the_folder, lasting.release()));
  the_limit = limit;
  return {};
}

bool is_served_by_command() {
  using Serves = bool (*)() noexcept;
  const auto serves = reinterpret_cast<Serves>(::dlsym(RTLD_DEFAULT, "etstream_heap_serves"));
  return serves != nullptr && serves();
}

}  // namespace

Result<Served> start(const std::string& folder, std::uint64_t limit, std::size_t from) {
  if (is_served_by_command()) return Served::kByCommand;
  const Locked locked;
  if (uses == 0) {
    ETSTREAM_TRY(find_functions());
    ETSTREAM_TRY(use_folder(folder, limit));
    if (const int failed = point_imports(imports, LeadTo::kStandIn)) {
      static_cast<void>(point_imports(allocating(), LeadTo::kFunction));
      return system_error(failed, "cannot have large blocks lie in", folder);
    }
    the_heap.keep_freed(true);
    the_heap.forget_peak();
    served_from.store(std::max<std::size_t>(from, kGranule));
  }
  ++uses;
  return Served::kHere;
}

void serve_python_arenas() noexcept { PythonArenas<Blocks>::serve(); }

void stop() noexcept {
  const Locked locked;
  if (uses == 0 || --uses != 0) return;
  served_from.store(kNever);
  // What can't be put back allocates as if it were.
  static_cast<void>(point_imports(allocating(), LeadTo::kFunction));
  // Nobody asks for another.
  the_heap.keep_freed(false);
}

const ProcessUse& done() noexcept { return the_heap.use(); }

}  // namespace etstream::heap
