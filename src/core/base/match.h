// SPDX-License-Identifier: BSD-3-Clause
//
// The value that a variant holds, given to a function as std::visit does, but without exceptions of its own.
//
//   match(value, [](std::int64_t integer) { ... }, [](const std::string& text) { ... });
//
// A call does not compile if an alternative is left out.
#pragma once

#include <cstddef>
#include <utility>
#include <variant>

namespace etstream {

/// Several functions as one overloaded function.
template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};

template <std::size_t kFirst, class Variant, class Visitor>
decltype(auto) match_from(const Variant& variant, const Visitor& visitor) {
  if constexpr (kFirst + 1 == std::variant_size_v<Variant>) {
    return visitor(*std::get_if<kFirst>(&variant));
  } else {
    if (const auto* const held = std::get_if<kFirst>(&variant)) return visitor(*held);
    return match_from<kFirst + 1>(variant, visitor);
  }
}

/// Calls the one of `functions` that takes the alternative that `variant` holds. All return the same type.
/// `variant` is not valueless.
template <class Variant, class... Functions>
decltype(auto) match(const Variant& variant, Functions... functions) {
  return match_from<0>(variant, Overloaded<Functions...>{std::move(functions)...});
}

}  // namespace etstream
