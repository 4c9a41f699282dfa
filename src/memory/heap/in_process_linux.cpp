// SPDX-License-Identifier: BSD-3-Clause
#include "memory/heap/in_process_linux.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/descriptor_posix.h"
#include "memory/heap/environment.h"
#include "memory/heap/heap_posix.h"
#include "memory/heap/import_tables_linux.h"
#include "memory/heap/in_use_posix.h"
#include "memory/heap/malloc_rules.h"
#include "memory/heap/pages.h"
#include "memory/heap/python_arenas_posix.h"
#include "memory/heap/report_use_posix.h"
#include "memory/heap/say.h"
#include "memory/heap/spill_folder.h"

namespace etstream::heap {

constinit Heap the_heap;
constinit MallocFunctions next_functions;
constinit std::atomic<std::size_t> served_from{kNever};

namespace {

struct Blocks : HeapBlocks {
  /// Resizes blocks even when the last use has ended: a large block must not move into memory then.
  static bool resize(void* block, std::size_t size) {
    return size >= kGranule && the_heap.resize(block, size);
  }
};

using Rules = MallocRules<Blocks>;

int stand_in_madvise(void* address, std::size_t size, int advice) noexcept {
  return the_heap.madvise(address, size, advice);
}
void* stand_in_dlopen(const char* file, int mode) noexcept;
void* stand_in_dlmopen(Lmid_t space, const char* file, int mode) noexcept;

template <class Function>
void* address_of(Function* function) {
  return reinterpret_cast<void*>(function);
}

/// The functions that free or empty blocks, or load objects that free blocks, come first. They stay in place
/// when no block is served any more. The functions that allocate are changed after them.
constexpr std::size_t kLasting = 7;
std::array<Import, kLasting + 5> imports{{
    {"free", address_of(Rules::free)},
    {"realloc", address_of(Rules::realloc)},
    {"reallocarray", address_of(Rules::reallocarray)},
    {"malloc_usable_size", address_of(Rules::malloc_usable_size)},
    {"madvise", address_of(stand_in_madvise)},
    {"dlopen", address_of(stand_in_dlopen)},
    {"dlmopen", address_of(stand_in_dlmopen)},
    {"malloc", address_of(Rules::malloc), true},
    {"calloc", address_of(Rules::calloc), true},
    {"memalign", address_of(Rules::memalign), true},
    {"aligned_alloc", address_of(Rules::memalign), true},
    {"posix_memalign", address_of(Rules::posix_memalign), true},
}};
void* (*next_dlopen)(const char*, int) = nullptr;
void* (*next_dlmopen)(Lmid_t, const char*, int) = nullptr;

std::span<const Import> lasting() { return std::span(imports).first<kLasting>(); }
std::span<const Import> allocating() { return std::span(imports).subspan<kLasting>(); }

/// Makes objects that a call of dlopen() loaded, if there are any, call the stand-ins. Returns `object`.
void* with_stand_ins(void* object) {
  const bool is_served = served_from.load() != kNever;
  const std::span<const Import> changed = is_served ? std::span<const Import>(imports) : lasting();
  if (object != nullptr && point_imports(changed, LeadTo::kStandIn, true) != 0) {
    say("a library that was loaded can't be changed to free large blocks");
  }
  return object;
}

::link_map* object_of(void* code) {
  ::Dl_info found{};
  void* object = nullptr;
  return ::dladdr1(code, &found, &object, RTLD_DL_LINKMAP) != 0 ? static_cast<::link_map*>(object) : nullptr;
}

bool has_folders(const ::link_map& object) {
  for (const ElfW(Dyn)* entry = object.l_ld; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_RPATH || entry->d_tag == DT_RUNPATH) return true;
  }
  return false;
}

using Folders = std::unique_ptr<::Dl_serinfo, decltype(&std::free)>;

/// Returns the folders in which the loader looks for what an object needs; null if it does not tell.
Folders folders_of(::link_map* object) {
  Folders folders(nullptr, std::free);
  ::Dl_serinfo size{};
  if (::dlinfo(object, RTLD_DI_SERINFOSIZE, &size) != 0) return folders;
  folders.reset(static_cast<::Dl_serinfo*>(std::calloc(1, size.dls_size)));
  if (folders == nullptr) return folders;
  folders->dls_size = size.dls_size;
  folders->dls_cnt = size.dls_cnt;
  if (::dlinfo(object, RTLD_DI_SERINFO, folders.get()) != 0) folders.reset();
  return folders;
}

/// Calls dlopen(file, mode) as if the code at `caller` called it. The loader looks for a name without a
/// folder in the places that the object of that code names (DT_RPATH, DT_RUNPATH).
void* open_for(void* caller, const char* file, int mode) {
  ::link_map* const object = object_of(caller);
  const bool is_name = file != nullptr && *file != '\0' && std::strchr(file, '/') == nullptr;
  if (!is_name || object == nullptr || !has_folders(*object)) return next_dlopen(file, mode);
  if (void* const loaded = next_dlopen(file, mode | RTLD_NOLOAD)) return loaded;
  const Folders folders = folders_of(object);
  for (unsigned at = 0; folders != nullptr && at < folders->dls_cnt; ++at) {
    std::array<char, 4096> path{};
    const int length =
        std::snprintf(path.data(), path.size(), "%s/%s", folders->dls_serpath[at].dls_name, file);
    if (length < 0 || static_cast<std::size_t>(length) >= path.size() || ::access(path.data(), R_OK) != 0) {
      continue;
    }
    if (void* const loaded = next_dlopen(path.data(), mode)) return loaded;
  }
  return next_dlopen(file, mode);
}

void* stand_in_dlopen(const char* file, int mode) noexcept {
  return with_stand_ins(open_for(__builtin_return_address(0), file, mode));
}

void* stand_in_dlmopen(Lmid_t space, const char* file, int mode) noexcept {
  return with_stand_ins(next_dlmopen(space, file, mode));
}

template <class Function>
void set(Function& function, std::string_view name) {
  function = reinterpret_cast<Function>(std::ranges::find(imports, name, &Import::name)->function);
}

/// Finds the functions that have a stand-in, at the first call.
Result<void> find_functions() {
  if (next_functions.malloc != nullptr) return {};
  for (Import& import : imports) {
    if (!find(import)) {
      return make_error(ErrorCode::kUnsupported, "this process has no function {}()", import.name);
    }
  }
  set(next_functions.calloc, "calloc");
  set(next_functions.realloc, "realloc");
  set(next_functions.free, "free");
  set(next_functions.memalign, "memalign");
  set(next_functions.malloc_usable_size, "malloc_usable_size");
  set(next_dlopen, "dlopen");
  set(next_dlmopen, "dlmopen");
  set(next_functions.malloc, "malloc");
  return {};
}

/// Keeps this library loaded, as the stand-ins are in it.
void stay_loaded() {
  ::Dl_info found{};
  if (::dladdr(&the_heap, &found) != 0) {
    static_cast<void>(::dlopen(found.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE));
  }
}

// Guards the three variables below.
constinit pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
constinit std::size_t uses = 0;
constinit char* the_folder = nullptr;
constinit std::uint64_t the_limit = 0;

void begin_child() {
  the_heap.after_fork_in_child();
  report_use();
  // Another thread of the parent may have held the lock while it waited for the loader, or the loader may
  // have waited for it.
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
    ::pthread_atfork([] { the_heap.before_fork(); }, [] { the_heap.after_fork_in_parent(); }, begin_child);
    stay_loaded();
    report_use();
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

Result<bool> start(const std::string& folder, std::uint64_t limit) {
  if (is_served_by_command()) return false;
  const Locked locked(lock);
  if (uses == 0) {
    ETSTREAM_TRY(find_functions());
    ETSTREAM_TRY(use_folder(folder, limit));
    if (const int failed = point_imports(imports, LeadTo::kStandIn)) {
      static_cast<void>(point_imports(allocating(), LeadTo::kFunction));
      return system_error(failed, "cannot have large blocks lie in", folder);
    }
    the_heap.keep_freed(true);
    the_heap.forget_peak();
    served_from.store(kDefaultFrom);
  }
  ++uses;
  return true;
}

bool keeps_limit() noexcept { return can_keep_limit(); }

void serve_python_arenas() noexcept { serve_arenas(); }

void stop() noexcept {
  const Locked locked(lock);
  if (uses == 0 || --uses != 0) return;
  served_from.store(kNever);
  // A stand-in that stays in place allocates like the function that it replaces.
  static_cast<void>(point_imports(allocating(), LeadTo::kFunction));
  // Nobody will ask for another block.
  the_heap.keep_freed(false);
}

const ProcessUse& done() noexcept { return the_heap.use(); }

}  // namespace etstream::heap
