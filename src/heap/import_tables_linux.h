// SPDX-License-Identifier: BSD-3-Clause
//
// The entries of loaded objects (the program and its libraries) through which they call functions of others,
// or take their addresses: read as the objects' relocations describe them, and changed to lead elsewhere.
//
// What an object has copied out of such an entry before is not changed with it.
#pragma once

#include <cstdint>
#include <span>

namespace etstream::heap {

/// A function that objects import, and what can stand in for it.
struct Import {
  const char* name = nullptr;
  void* stand_in = nullptr;
  /// Whether an object's entries for it are changed after those for others.
  bool last = false;
  /// Where calls lead.
  void* function = nullptr;
  /// What its address is taken as: another where the main program, at a fixed place, has one of its own.
  void* address = nullptr;
};

/// Finds what `name` leads to in this process; false if to nothing.
[[nodiscard]] bool find(Import& import) noexcept;

enum class LeadTo : std::uint8_t { kStandIn, kFunction };

/// Has the entries of all loaded objects lead there. Those that lead to a third place, an allocator of the
/// object's own say, stay. 0, or errno's value of the first that could not be changed; the others are.
///
/// Waits until other threads have loaded what they are loading. Any thread, several at once.
[[nodiscard]] int point_imports(std::span<const Import> imports, LeadTo to) noexcept;

/// Has the entries of the objects that were loaded since the last call lead to what stands in.
[[nodiscard]] int point_new_imports(std::span<const Import> imports) noexcept;

}  // namespace etstream::heap
