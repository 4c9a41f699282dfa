// SPDX-License-Identifier: BSD-3-Clause
//
// The import tables of loaded objects (the program and its libraries): the entries through which an object
// calls functions of others, or takes their addresses. Its relocations tell where they are.
//
// An address that an object has copied out of an entry before stays as it was.
#pragma once

#include <cstdint>
#include <span>

namespace etstream::heap {

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

/// Finds `function` and `address` by `name` in this process; false if there is no such function.
[[nodiscard]] bool find(Import& import) noexcept;

enum class LeadTo : std::uint8_t { kStandIn, kFunction };

/// Points the entries of all loaded objects there; with `only_new`, those of objects loaded since the last
/// call. An entry that points elsewhere, such as to an allocator of the object's own, stays. Returns 0, or
/// errno's value for the first entry that could not be changed; the others are changed.
///
/// Waits until other threads have finished loading. Thread-safe.
[[nodiscard]] int point_imports(std::span<const Import> imports, LeadTo to, bool only_new = false) noexcept;

}  // namespace etstream::heap
