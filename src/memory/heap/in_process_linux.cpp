// SPDX-License-Identifier: BSD-3-Clause
//
// First the import tables of loaded objects (the program and its libraries): the entries through which an
// object calls functions of others, or takes their addresses. Its relocations tell where they are. An address
// that an object has copied out of an entry before stays as it was. Then the functions that stand in.
#include "memory/heap/in_process_linux.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
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
#include "memory/heap/heap_posix.h"
#include "memory/heap/malloc_rules_posix.h"
#include "memory/heap/shared_heap_linux.h"
#include "memory/heap/spill_file.h"
#include "memory/heap/statistics_posix.h"

namespace etstream::heap {

constinit Heap the_heap;
constinit MallocFunctions next_functions;
constinit std::atomic<std::size_t> served_from{kNever};

namespace {

/// A function that objects import, and its stand-in.
struct Import {
  const char* name = nullptr;
  void* stand_in = nullptr;
  /// True if an object's entries for it are changed after its entries for other functions.
  bool last = false;
  /// The function that calls reach.
  void* function = nullptr;
  /// The function's address as objects take it. It differs from `function` if the main program, at a fixed
  /// address, has an entry of its own for it.
  void* address = nullptr;
};

enum class LeadTo : std::uint8_t { kStandIn, kFunction };

#if defined(__x86_64__)
constexpr std::uint32_t kCall = R_X86_64_JUMP_SLOT;
constexpr std::uint32_t kAddress = R_X86_64_GLOB_DAT;
constexpr std::uint32_t kAddressInData = R_X86_64_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kCall = R_AARCH64_JUMP_SLOT;
constexpr std::uint32_t kAddress = R_AARCH64_GLOB_DAT;
constexpr std::uint32_t kAddressInData = R_AARCH64_ABS64;
#else
#error "the relocations of this processor are not known here"
#endif

using Address = std::uintptr_t;

struct AddressRange {
  Address begin = 0;
  Address end = 0;

  [[nodiscard]] bool has(Address address) const { return address - begin < end - begin; }
};

AddressRange pages_of(AddressRange range) {
  const auto within = static_cast<Address>(::sysconf(_SC_PAGESIZE)) - 1;
  return {range.begin & ~within, (range.end + within) & ~within};
}

/// The tables of an object, in memory. The loader takes relocations with addends alone on these processors.
class Tables {
 public:
  Tables(const ElfW(Dyn) * entries, Address base) : entries_(entries), base_(base) {}

  /// Calls `look(relocation, symbol, name)` for each relocation that may name a symbol.
  template <class Look>
  void for_each_relocation(Look look) const {
    const auto* const symbols = table<ElfW(Sym)>(DT_SYMTAB);
    const auto* const names = table<char>(DT_STRTAB);
    if (symbols == nullptr || names == nullptr) return;
    const auto look_at = [&](const ElfW(Rela) * relocations, std::size_t first, std::size_t bytes) {
      if (relocations == nullptr) return;
      for (std::size_t at = first; at < bytes / sizeof(ElfW(Rela)); ++at) {
        const ElfW(Sym)& symbol = symbols[ELF64_R_SYM(relocations[at].r_info)];
        look(relocations[at], symbol, names + symbol.st_name);
      }
    };
    // DT_RELACOUNT relocations come first and name no symbol.
    look_at(table<ElfW(Rela)>(DT_RELA), value_of(DT_RELACOUNT), value_of(DT_RELASZ));
    look_at(table<ElfW(Rela)>(DT_JMPREL), 0, value_of(DT_PLTRELSZ));
  }

 private:
  /// Returns 0 if there is no such entry.
  [[nodiscard]] Address value_of(ElfW(Sxword) tag) const {
    const ElfW(Dyn)* entry = entries_;
    while (entry->d_tag != DT_NULL && entry->d_tag != tag) ++entry;
    return entry->d_tag == tag ? entry->d_un.d_val : 0;
  }
  /// Returns the table at an entry. The loader has replaced most offsets by addresses, but not in objects
  /// that it did not load.
  template <class Entry>
  [[nodiscard]] const Entry* table(ElfW(Sxword) tag) const {
    const Address value = value_of(tag);
    return std::bit_cast<const Entry*>(value != 0 && value < base_ ? base_ + value : value);
  }

  const ElfW(Dyn) * entries_;
  Address base_;
};

const Import* named(std::span<const Import> imports, const char* name) {
  for (const Import& import : imports) {
    // Most names differ in the first letter.
    if (*name == *import.name && std::strcmp(name, import.name) == 0) return &import;
  }
  return nullptr;
}

/// An object, as the loader describes it.
class Object {
 public:
  explicit Object(const ::dl_phdr_info& info) : base_(info.dlpi_addr) {
    headers_ = {info.dlpi_phdr, info.dlpi_phnum};
    for (const auto& header : headers_) {
      const AddressRange range = in_memory(header);
      if (header.p_type == PT_DYNAMIC) dynamic_ = std::bit_cast<const ElfW(Dyn)*>(range.begin);
      if (header.p_type == PT_GNU_RELRO) read_only_ = range;
      if (header.p_type != PT_LOAD) continue;
      whole_.begin = std::min(whole_.begin, range.begin);
      whole_.end = std::max(whole_.end, range.end);
    }
    // This rounds as the loader does: the last page stays writable if it also holds writable data.
    read_only_ = {pages_of(read_only_).begin, pages_of({read_only_.end, read_only_.end}).begin};
  }
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  ~Object() { protect(); }

  /// Changes an entry. Returns 0, or errno's value.
  int point(std::span<const Import> imports, LeadTo to) {
    if (dynamic_ == nullptr || is_the_loader() || is_the_kernels()) return 0;
    const Tables tables(dynamic_, base_);
    int failed = 0;
    for (const bool last : {false, true}) {
      tables.for_each_relocation([&](const auto& relocation, const auto& symbol, const char* name) {
        const auto type = static_cast<std::uint32_t>(ELF64_R_TYPE(relocation.r_info));
        if (type != kCall && type != kAddress && type != kAddressInData) return;
        const Import* const import = named(imports, name);
        if (import == nullptr || import->last != last || relocation.r_addend != 0) return;
        const int error = point(base_ + relocation.r_offset, type == kCall, symbol, *import, to);
        if (failed == 0) failed = error;
      });
    }
    return failed;
  }

 private:
  [[nodiscard]] AddressRange in_memory(const ElfW(Phdr) & header) const {
    return {base_ + header.p_vaddr, base_ + header.p_vaddr + header.p_memsz};
  }
  [[nodiscard]] bool is_the_loader() const { return base_ == ::getauxval(AT_BASE) && base_ != 0; }
  [[nodiscard]] bool is_the_kernels() const { return whole_.has(::getauxval(AT_SYSINFO_EHDR)); }

  int point(Address at, bool is_call, const ElfW(Sym) & symbol, const Import& import, LeadTo to) {
    if (at % alignof(void*) != 0 || !whole_.has(at)) return 0;
    std::atomic_ref<void*> entry(*std::bit_cast<void**>(at));
    void* const now = entry.load(std::memory_order_relaxed);
    void* then = import.stand_in;
    if (to == LeadTo::kFunction) {
      if (now != import.stand_in) return 0;
      then = is_call ? import.function : import.address;
    } else {
      // Before the first call through it, an entry points into its own object, to code that asks the loader.
      const bool is_unknown =
          is_call && symbol.st_shndx == SHN_UNDEF && whole_.has(reinterpret_cast<Address>(now));
      if (now != import.function && now != import.address && !is_unknown) return 0;
    }
    if (const int failed = unprotect(at)) return failed;
    entry.store(then, std::memory_order_release);
    return 0;
  }

  int unprotect(Address at) {
    if (opened_.has(at)) return 0;
    protect();
    AddressRange pages = read_only_;
    int before = PROT_READ;
    if (!pages.has(at)) {
      pages = pages_of({at, at + sizeof(void*)});
      before = protection_of(at);
      if ((before & PROT_WRITE) != 0) return 0;
    }
    if (::mprotect(std::bit_cast<void*>(pages.begin), pages.end - pages.begin, before | PROT_WRITE) != 0) {
      return errno;
    }
    opened_ = pages;
    opened_was_ = before;
    return 0;
  }

  void protect() {
    if (opened_.begin == opened_.end) return;
    ::mprotect(std::bit_cast<void*>(opened_.begin), opened_.end - opened_.begin, opened_was_);
    opened_ = {};
  }

  [[nodiscard]] int protection_of(Address at) const {
    for (const auto& header : headers_) {
      if (header.p_type != PT_LOAD || !in_memory(header).has(at)) continue;
      return ((header.p_flags & PF_R) != 0 ? PROT_READ : 0) |
             ((header.p_flags & PF_W) != 0 ? PROT_WRITE : 0) | ((header.p_flags & PF_X) != 0 ? PROT_EXEC : 0);
    }
    return PROT_READ;
  }

  Address base_;
  std::span<const ElfW(Phdr)> headers_;
  AddressRange whole_{~Address{0}, 0};
  AddressRange read_only_;
  const ElfW(Dyn) * dynamic_ = nullptr;
  AddressRange opened_;
  int opened_was_ = 0;
};

/// The state at the last change of entries: how often the process had loaded or unloaded an object by then,
/// and how many objects there were. Only dl_iterate_phdr() uses it, which lets in one thread at a time.
constinit struct {
  unsigned long long loads = 0;
  unsigned long long unloads = 0;
  std::size_t objects = 0;
} known_loaded;

/// Calls `look` with each loaded object, for as long as it returns true.
template <class Look>
void for_each_object(Look look) {
  ::dl_iterate_phdr([](::dl_phdr_info* info, std::size_t,
                       void* found) { return (*static_cast<Look*>(found))(*info) ? 0 : 1; },
                    &look);
}

unsigned long long loads_so_far() {
  unsigned long long loads = 0;
  for_each_object([&](const ::dl_phdr_info& info) {
    loads = info.dlpi_adds;
    return false;
  });
  return loads;
}

/// Returns when no other thread is loading an object that loads_so_far() had counted before.
void wait_for_loads() {
  // A lookup waits until loading has ended. dlopen() is no choice: it may have led here.
  static_cast<void>(::dlsym(RTLD_DEFAULT, "malloc"));
}

/// Returns the address of the function in the first library that defines it, in the order in which the loader
/// looks: an allocator that was preloaded comes before the C library.
void* first_in_libraries(const char* name) {
  void* const program = ::dlopen(nullptr, RTLD_LAZY);
  ::link_map* object = nullptr;
  if (program == nullptr || ::dlinfo(program, RTLD_DI_LINKMAP, static_cast<void*>(&object)) != 0) {
    return nullptr;
  }
  ::dlclose(program);
  while ((object = object->l_next) != nullptr) {
    void* const library = ::dlopen(object->l_name, RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) continue;
    void* const function = ::dlsym(library, name);
    ::dlclose(library);
    // A lookup in a library goes on in the libraries that it needs.
    ::Dl_info found{};
    void* owner = nullptr;
    if (function != nullptr && ::dladdr1(function, &found, &owner, RTLD_DL_LINKMAP) != 0 && owner == object) {
      return function;
    }
  }
  return nullptr;
}

/// Finds `function` and `address` by `name` in this process; false if there is no such function.
bool find(Import& import) noexcept {
  import.address = ::dlsym(RTLD_DEFAULT, import.name);
  import.function = import.address;
  ::Dl_info found{};
  void* symbol = nullptr;
  if (import.address == nullptr || ::dladdr1(import.address, &found, &symbol, RTLD_DL_SYMENT) == 0 ||
      symbol == nullptr || static_cast<const ElfW(Sym)*>(symbol)->st_shndx != SHN_UNDEF) {
    return import.address != nullptr;
  }
  // The symbol is the main program's own entry for the function (its PLT), not the function.
  import.function = first_in_libraries(import.name);
  return import.function != nullptr;
}

/// Points the entries of all loaded objects there; with `only_new`, those of objects loaded since the last
/// call. An entry that points elsewhere, such as to an allocator of the object's own, stays. Returns 0, or
/// errno's value for the first entry that could not be changed; the others are changed.
///
/// Waits until other threads have finished loading. Thread-safe.
int point_imports(std::span<const Import> imports, LeadTo to, bool only_new = false) noexcept {
  for (;;) {
    const unsigned long long loads = loads_so_far();
    wait_for_loads();
    bool is_outdated = false;
    bool skips_known = only_new;
    std::size_t at = 0;
    int failed = 0;
    for_each_object([&](const ::dl_phdr_info& info) {
      if (at == 0) {
        // The loader may still be changing an object that was counted later.
        is_outdated = info.dlpi_adds != loads;
        skips_known = skips_known && info.dlpi_subs == known_loaded.unloads;
        if (is_outdated || (skips_known && info.dlpi_adds == known_loaded.loads)) return false;
      }
      if (!skips_known || at >= known_loaded.objects) {
        const int error = Object(info).point(imports, to);
        if (failed == 0) failed = error;
      }
      // New objects come last.
      ++at;
      if (to == LeadTo::kStandIn && (!skips_known || at > known_loaded.objects)) {
        known_loaded = {info.dlpi_adds, info.dlpi_subs, at};
      }
      return true;
    });
    if (!is_outdated) return failed;
  }
}

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
