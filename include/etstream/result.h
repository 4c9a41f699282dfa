// SPDX-License-Identifier: BSD-3-Clause
//
// Result: the outcome of every call that can fail. It is a value, or an Error that says what went wrong.
//
//   etstream::Result<etstream::ByteSource> model = etstream::ByteSource::file("model.pte");
//   if (!model) return model.error();
//   const std::uint64_t size = model->size();
//
// The names are std::expected's (C++23). No exception crosses the library's boundary: running out of
// memory is ErrorCode::kOutOfMemory.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "etstream/advice.h"

namespace etstream {

/// The kinds of errors, for software that handles them differently.
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

/// `message` and `advice` are for people; full_message() joins them. The message names the file, the offset
/// if there is one, what was expected and what was found; the advice says what to do next, if that is known.
/// The rest is for software: `system_code` is the errno of a failed system call, otherwise 0. `file` is the
/// file that the message is about, as the caller named it, which need not be UTF-8. `offset`, in bytes from
/// the beginning of that file, is the place in it, if the message names one.
struct Error {
  ErrorCode code = ErrorCode::kInvalidArgument;
  std::string message;
  int system_code = 0;
  std::optional<std::string> file = std::nullopt;
  std::optional<std::uint64_t> offset = std::nullopt;
  Advice advice = {};
};

/// Returns the message with the advice, in the words of the library or of another interface.
[[nodiscard]] inline std::string full_message(const Error& error, TermWords words = library_words) {
  return full_message(error.message, error.advice, words);
}

/// A `T`, which is movable and not a reference, or an `Error`. Reading the value of a failed result, or the
/// error of a good one, ends the program. value() of a temporary is itself a value, not a reference into the
/// Result, so that `for (const auto& method : program.methods().value())` is sound.
template <class T>
class [[nodiscard]] Result {
 public:
  /// The type of the value.
  using value_type = T;

  /// A success or a failure, so that a function can return either by itself.
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: converts on purpose
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: converts on purpose

  /// Returns whether there is a value; otherwise there is an error.
  [[nodiscard]] bool has_value() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }

  /// Returns the value. Ends the program if there is none.
  T& value() & { return *checked_value(this); }
  const T& value() const& { return *checked_value(this); }
  T value() && { return std::move(*checked_value(this)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T operator*() && { return std::move(*this).value(); }
  T* operator->() { return checked_value(this); }
  const T* operator->() const { return checked_value(this); }

  /// Returns the error. Ends the program if there is a value.
  Error& error() & { return *checked_error(this); }
  const Error& error() const& { return *checked_error(this); }
  Error&& error() && { return std::move(*checked_error(this)); }

  /// Returns `next(value)` if there is a value, otherwise the error. `next` returns a Result.
  template <class F>
  auto and_then(F&& next) && -> std::invoke_result_t<F, T&&> {
    if (!has_value()) return std::move(*this).error();
    return std::forward<F>(next)(std::move(*this).value());
  }

 private:
  template <class Self>
  static auto checked_value(Self* self) {
    auto* value = std::get_if<0>(&self->state_);
    if (!value) misuse("value() of a failed Result", self->error().message.c_str());
    return value;
  }
  template <class Self>
  static auto checked_error(Self* self) {
    auto* error = std::get_if<1>(&self->state_);
    if (!error) misuse("error() of a Result that holds a value", "");
    return error;
  }
  [[noreturn]] static void misuse(const char* what, const char* message) {
    std::fprintf(stderr, "etstream: %s: %s\n", what, message);
    std::abort();
  }

  std::variant<T, Error> state_;
};

/// Success, which is the default, or an `Error`.
template <>
class [[nodiscard]] Result<void> : private Result<std::monostate> {
 public:
  /// The type of the value.
  using value_type = void;

  /// A success or a failure, so that a function can return either by itself.
  Result() : Result<std::monostate>(std::monostate{}) {}
  Result(Error error) : Result<std::monostate>(std::move(error)) {}  // NOLINT: converts on purpose

  using Result<std::monostate>::has_value;
  using Result<std::monostate>::operator bool;
  using Result<std::monostate>::error;

  /// Ends the program if there is an error.
  void value() const { static_cast<void>(Result<std::monostate>::value()); }

  /// Returns what `next` returns if this is a success, otherwise the error. `next` returns a Result.
  template <class F>
  auto and_then(F&& next) && -> std::invoke_result_t<F> {
    if (!has_value()) return std::move(*this).error();
    return std::forward<F>(next)();
  }
};

}  // namespace etstream
