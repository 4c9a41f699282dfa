// SPDX-License-Identifier: BSD-3-Clause
//
// Passing an error on: the two macros of the project.
#pragma once

#include <new>
#include <stdexcept>
#include <utility>

#include "etstream/result.h"

#define ETSTREAM_JOIN_(a, b) a##b
#define ETSTREAM_JOIN(a, b) ETSTREAM_JOIN_(a, b)

/// Returns the error of `expression`, a Result, from the enclosing function if it has one.
#define ETSTREAM_TRY(expression)                                     \
  do {                                                               \
    auto etstream_result = (expression);                             \
    if (!etstream_result) return std::move(etstream_result).error(); \
  } while (false)

/// `ETSTREAM_ASSIGN(auto layout, plan(bundle));` assigns the value, or returns the error.
#define ETSTREAM_ASSIGN(declaration, expression) \
  ETSTREAM_ASSIGN_(ETSTREAM_JOIN(etstream_result_, __LINE__), declaration, expression)
#define ETSTREAM_ASSIGN_(result, declaration, expression) \
  auto result = (expression);                             \
  if (!result) return std::move(result).error();          \
  declaration = std::move(result).value()

namespace etstream {

/// Runs `body`, which returns a Result, and turns a failed allocation into kOutOfMemory. Every public
/// entry point that allocates goes through it.
template <class F>
auto without_exceptions(F&& body) noexcept -> decltype(body()) {
  try {
    return std::forward<F>(body)();
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::kOutOfMemory, "out of memory"};
  } catch (const std::length_error&) {
    return Error{ErrorCode::kOutOfMemory, "a container would be larger than the address space"};
  }
}

}  // namespace etstream
