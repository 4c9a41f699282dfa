// SPDX-License-Identifier: BSD-3-Clause
#include "heap/open_object_linux.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace etstream::heap {
namespace {

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

/// Where the loader looks for what an object needs; null where that can't be told.
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

}  // namespace

void* open_object(const OpenFunctions& functions, void* caller, const char* file, int mode) noexcept {
  ::link_map* const object = object_of(caller);
  const bool is_name = file != nullptr && *file != '\0' && std::strchr(file, '/') == nullptr;
  if (!is_name || object == nullptr || !has_folders(*object)) return functions.open(file, mode);
  if (void* const loaded = functions.open(file, mode | RTLD_NOLOAD)) return loaded;
  const Folders folders = folders_of(object);
  for (unsigned at = 0; folders != nullptr && at < folders->dls_cnt; ++at) {
    std::array<char, 4096> path{};
    const int length =
        std::snprintf(path.data(), path.size(), "%s/%s", folders->dls_serpath[at].dls_name, file);
    if (length < 0 || static_cast<std::size_t>(length) >= path.size() || ::access(path.data(), R_OK) != 0) {
      continue;
    }
    if (void* const loaded = functions.open(path.data(), mode)) return loaded;
  }
  return functions.open(file, mode);
}

}  // namespace etstream::heap
