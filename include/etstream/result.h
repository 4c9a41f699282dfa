// SPDX-License-Identifier: BSD-3-Clause
//
// What every fallible call returns: a value, or an Error that says what went wrong.
//
//   etstream::Result<Layout> layout = etstream::plan(bundle);
//   if (!layout) return fail(layout.error().message);
//   use(*layout);
//
// The names are std::expected's (C++23). No exception crosses the library's boundary: running out of
// memory is ErrorCode::kOutOfMemory.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

namespace etstream {

enum class ErrorCode {
  kInvalidArgument,  // the caller asked for something that makes no sense
  kCorrupt,          // a file's bytes contradict its format
  kUnsupported,      // valid, but not something etstream does
  kTooLarge,         // over a limit of the format or of the machine
  kNotFound,         // a file, or a name in a file, is not there
  kIo,               // the operating system refused a read or a write
  kOutOfMemory,
  kInterrupted,  // the caller asked to stop
};

/// `message` is for a person: it names the file and, where there is one, the offset, what was
/// expected, what was found and what to do next. `code` is for a program.
struct Error {
  ErrorCode code = ErrorCode::kInvalidArgument;
  std::string message;
};

/// A `T` or an `Error`. `T` is movable, not a reference; `Result<void>` holds only success or failure.
/// Reading the value of a failed result, or the error of a good one, ends the program.
template <class T>
class [[nodiscard]] Result {
  using Stored = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

 public:
  using value_type = T;

  Result()
    requires std::is_void_v<T>
  = default;
  template <class U = Stored>
    requires(!std::is_void_v<T> && std::is_constructible_v<Stored, U &&> &&
             !std::is_same_v<std::remove_cvref_t<U>, Result> &&
             !std::is_same_v<std::remove_cvref_t<U>, Error>)
  Result(U&& value) : state_(std::in_place_index<0>, std::forward<U>(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  [[nodiscard]] bool has_value() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }

  Stored& value() & { return *checked_value(); }
  const Stored& value() const& { return *const_cast<Result*>(this)->checked_value(); }
  Stored&& value() && { return std::move(*checked_value()); }
  Stored& operator*() & { return value(); }
  const Stored& operator*() const& { return value(); }
  Stored&& operator*() && { return std::move(*this).value(); }
  Stored* operator->() { return checked_value(); }
  const Stored* operator->() const { return const_cast<Result*>(this)->checked_value(); }

  Error& error() & { return *checked_error(); }
  const Error& error() const& { return *const_cast<Result*>(this)->checked_error(); }
  Error&& error() && { return std::move(*checked_error()); }

  /// `next(value)` if there is a value, otherwise the error. `next` returns a Result.
  template <class F>
  auto and_then(F&& next) && {
    if constexpr (std::is_void_v<T>) {
      using Next = std::invoke_result_t<F>;
      return has_value() ? std::forward<F>(next)() : Next(std::move(error()));
    } else {
      using Next = std::invoke_result_t<F, T&&>;
      return has_value() ? std::forward<F>(next)(std::move(value())) : Next(std::move(error()));
    }
  }

 private:
  Stored* checked_value() {
    if (auto* value = std::get_if<0>(&state_)) return value;
    misuse("value() of a failed Result", std::get_if<1>(&state_)->message.c_str());
  }
  Error* checked_error() {
    if (auto* error = std::get_if<1>(&state_)) return error;
    misuse("error() of a Result that holds a value", "");
  }
  [[noreturn]] static void misuse(const char* what, const char* message) {
    std::fprintf(stderr, "etstream: %s: %s\n", what, message);
    std::abort();
  }

  std::variant<Stored, Error> state_;
};

}  // namespace etstream
