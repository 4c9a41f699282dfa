// SPDX-License-Identifier: BSD-3-Clause
//
// dlopen() in somebody else's place.
#pragma once

#include <dlfcn.h>

namespace etstream::heap {

struct OpenFunctions {
  void* (*open)(const char*, int) = nullptr;
  void* (*in_space)(Lmid_t, const char*, int) = nullptr;
};

/// What dlopen(file, mode) is where `caller`, an address of code, calls it: a name without a folder is looked
/// for where the object of that code says (DT_RPATH, DT_RUNPATH).
[[nodiscard]] void* open_object(const OpenFunctions& functions, void* caller, const char* file,
                                int mode) noexcept;

}  // namespace etstream::heap
