// SPDX-License-Identifier: BSD-3-Clause
//
// Errors on their way between the library and Python. Errors of the library are raised. Exceptions that
// Python raises while the library calls it come out again as they were, also those of handlers of signals.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <exception>
#include <string_view>
#include <type_traits>
#include <utility>

#include "etstream/result.h"

namespace etstream::python {

namespace nb = nanobind;

/// Returns the words of advice in Python, which are the names of arguments.
[[nodiscard]] std::string_view argument_words(AdviceTerm term);

/// Raises the exception of etstream._errors for `error`, with its advice in the message. With the GIL held.
[[noreturn]] void raise(const Error& error);

/// Keeps the exception that is being handled for raise_kept(), in this thread, and returns an error in its
/// place.
[[nodiscard]] Error keep_exception();

/// Raises the exception that was kept since the current call of the library began, if any, whatever the
/// library made of the error in its place. With the GIL held.
void raise_kept();

/// A call of the library. Calls nest if Python, called by one, makes another: each has its own exception.
class LibraryCall {
 public:
  LibraryCall();
  LibraryCall(const LibraryCall&) = delete;
  LibraryCall& operator=(const LibraryCall&) = delete;
  ~LibraryCall();

 private:
  std::exception_ptr outer_;
};

/// Returns the value of `result`, or raises its error.
template <class T>
T value_or_raise(Result<T> result) {
  raise_kept();
  if (!result) raise(result.error());
  if constexpr (!std::is_void_v<T>) return std::move(result).value();
}

/// Returns a number that changes whenever Python may have run.
[[nodiscard]] std::uint64_t python_turn() noexcept;
/// Notes that Python runs, or has run.
void next_python_turn() noexcept;

/// Runs `body`, which returns a Result and touches no Python object, without the GIL. Returns its value, or
/// raises its error.
template <class F>
auto without_gil(F&& body) {
  const LibraryCall call;
  next_python_turn();
  auto result = [&] {
    const nb::gil_scoped_release released;
    return std::forward<F>(body)();
  }();
  return value_or_raise(std::move(result));
}

/// Runs `body`, which returns a Result, with the GIL, and turns Python's exceptions into its error.
template <class F>
auto with_gil(F&& body) noexcept -> decltype(body()) {
  const nb::gil_scoped_acquire acquired;
  next_python_turn();
  try {
    return std::forward<F>(body)();
  } catch (...) {
    return keep_exception();
  }
}

/// Runs Python's handlers for signals that have come, such as Ctrl-C, in the main thread: Python does so only
/// when it is asked to. Takes the GIL. Error: that of a handler that raised, as keep_exception() returns it.
[[nodiscard]] Result<void> check_signals();

/// Does the same at most ten times a second, for frequent calls: each run waits for the GIL.
[[nodiscard]] Result<void> check_signals_at_times();

}  // namespace etstream::python
