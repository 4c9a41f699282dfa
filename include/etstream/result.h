// SPDX-License-Identifier: BSD-3-Clause
//
// Marks what a shared library exports; everything else in it is hidden.
//
// Advice: what to do about an error or a finding. It is kept apart from the message, as each interface has
// its own words for an option: head_dim in C++ and Python is --head-dim in the command.
//
//   const etstream::Advice advice = {"give it with ", etstream::AdviceTerm::kHeadDim};
//   std::puts(etstream::full_message("no head_dim is known", advice).c_str());
//
// Result: the outcome of every call that can fail. It is a value, or an Error that says what went wrong.
//
//   etstream::Result<etstream::ByteSource> model = etstream::ByteSource::file("model.pte");
//   if (!model) return model.error();
//   const std::uint64_t size = model->size();
//
// The names are std::expected's (C++23). No exception crosses the library's boundary: running out of
// memory is ErrorCode::kOutOfMemory.
//
// The results of checking a file.
//
//   const auto file = etstream::ByteSource::file("model.bpte").value();
//   const etstream::Findings findings = etstream::verify(file).value();
//   for (const etstream::Finding& error : findings.errors) std::puts(full_message(error).c_str());
//   if (findings.ok()) std::puts("sound");
//
// The hash that segmented bundles store of their parts: 128-bit XXH3, highest byte first, as `xxhsum -H2`
// prints it. It detects damage; it does not protect against forgery.
//
//   const etstream::ContentHash none{};
//   if (none == etstream::ContentHash{}) std::puts("not hashed");
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#if defined(__GNUC__)
#define ETSTREAM_EXPORT __attribute__((visibility("default")))
/// Hides a member of an exported class.
#define ETSTREAM_HIDDEN __attribute__((visibility("hidden")))
#else
#define ETSTREAM_EXPORT
#define ETSTREAM_HIDDEN
#endif

namespace etstream {

/// An option, or a thing to do, that the interfaces have different words for.
enum class AdviceTerm {
  kAllowOpaque,
  kBase,
  kBundleTestCases,
  kCheckBundle,
  kChooseOtherPython,
  kConstantTensorAlignment,
  kDelegateAlignment,
  kDelegatesInSegments,
  kExtractConstants,
  kGiveFileInFolder,
  kHeadDim,
  kJoinTensorData,
  kKeepPayload,
  kMaxDisk,
  kMoveConstantsOut,
  kNoIdentifier,
  kNoSync,
  kPartial,
  kRaiseLimit,
  kReadAsCheckpoint,
  kSegmentsFrom,
  kStrictAlignment,
  kTakeApart,
  kTakePayloadOut,
  kTakeProgramOut,
  kVerify,
  kWriteProgram,
  kWriteToDescriptor,
};

/// Text, and terms, which join to a sentence. Empty if there is no advice.
using Advice = std::vector<std::variant<std::string, AdviceTerm>>;

/// Returns the words of an interface for a term.
using TermWords = std::string_view (*)(AdviceTerm term);

/// Returns the words of the C++ library, which are the names in its structs.
[[nodiscard]] ETSTREAM_EXPORT std::string_view library_words(AdviceTerm term);

/// Returns "MESSAGE; ADVICE", or the message alone if there is no advice.
[[nodiscard]] ETSTREAM_EXPORT std::string full_message(std::string message, const Advice& advice,
                                                       TermWords words = library_words);

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

/// The part of a Result that its value does not matter to. It is compiled once, as nearly every function has
/// Results.
class ResultBase {
 protected:
  /// Moves or copies an error to where none is, or ends one.
  static ETSTREAM_EXPORT void move_error(Error* to, Error&& from) noexcept;
  static ETSTREAM_EXPORT void copy_error(Error* to, const Error& from);
  static ETSTREAM_EXPORT void destroy_error(Error* error) noexcept;

  /// Ends the program: there is an error where a value is expected, or a value where an error is.
  [[noreturn]] static ETSTREAM_EXPORT void end_without_value(const Error& error) noexcept;
  [[noreturn]] static ETSTREAM_EXPORT void end_without_error() noexcept;
};

/// A `T`, which moves without exceptions and is no reference, or an `Error`. Reading the value of a failed
/// result, or the error of a good one, ends the program. value() of a temporary is itself a value, not a
/// reference into the Result, so that `for (const auto& method : program.methods().value())` is sound.
template <class T>
class [[nodiscard]] Result : private ResultBase {
 public:
  /// The type of the value.
  using value_type = T;

  /// A success or a failure, so that a function can return either by itself.
  Result(T value) : value_(std::move(value)), has_value_(true) {}  // NOLINT: converts on purpose
  Result(Error&& error) noexcept : has_value_(false) { move_error(&error_, std::move(error)); }  // NOLINT
  Result(const Error& error) : has_value_(false) { copy_error(&error_, error); }                 // NOLINT

  /// Takes the value or the error of another one, which keeps what a move leaves of it.
  Result(Result&& other) noexcept : has_value_(other.has_value_) { take(std::move(other)); }
  /// Copies the value or the error, if values can be copied.
  Result(const Result& other) requires std::is_copy_constructible_v<T> : has_value_(other.has_value_) {
    if (has_value_) {
      std::construct_at(&value_, other.value_);
    } else {
      copy_error(&error_, other.error_);
    }
  }
  /// Ends what it has, and takes the value or the error of another one.
  Result& operator=(Result other) noexcept {
    destroy();
    has_value_ = other.has_value_;
    take(std::move(other));
    return *this;
  }
  ~Result() { destroy(); }

  /// Returns whether there is a value; otherwise there is an error.
  [[nodiscard]] bool has_value() const noexcept { return has_value_; }
  explicit operator bool() const noexcept { return has_value_; }

  /// Returns the value. Ends the program if there is none.
  T& value() & {
    if (!has_value_) end_without_value(error_);
    return value_;
  }
  /// Returns the value. Ends the program if there is none.
  const T& value() const& {
    if (!has_value_) end_without_value(error_);
    return value_;
  }
  /// Returns the value, or a part of it. Ends the program if there is none.
  T value() && { return std::move(value()); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T operator*() && { return std::move(value()); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  /// Returns the error. Ends the program if there is a value.
  Error& error() & {
    if (has_value_) end_without_error();
    return error_;
  }
  /// Returns the error. Ends the program if there is a value.
  const Error& error() const& {
    if (has_value_) end_without_error();
    return error_;
  }
  /// Returns the error, to be moved from. Ends the program if there is a value.
  Error&& error() && { return std::move(error()); }

  /// Returns `next(value)` if there is a value, otherwise the error. `next` returns a Result.
  template <class F>
  auto and_then(F&& next) && -> std::invoke_result_t<F, T&&> {
    if (!has_value()) return std::move(*this).error();
    return std::forward<F>(next)(std::move(*this).value());
  }

 private:
  /// Takes the value or the error of another one, whose state this one has already.
  void take(Result&& other) noexcept {
    if (has_value_) {
      std::construct_at(&value_, std::move(other.value_));
    } else {
      move_error(&error_, std::move(other.error_));
    }
  }
  void destroy() noexcept {
    if (has_value_) {
      std::destroy_at(&value_);
    } else {
      destroy_error(&error_);
    }
  }

  union {
    T value_;
    Error error_;
  };
  bool has_value_;
};

/// Success, which is the default, or an `Error`.
template <>
class [[nodiscard]] Result<void> : private Result<std::monostate> {
 public:
  /// The type of the value.
  using value_type = void;

  /// A success or a failure, so that a function can return either by itself.
  Result() : Result<std::monostate>(std::monostate{}) {}
  Result(Error&& error) noexcept : Result<std::monostate>(std::move(error)) {}  // NOLINT: converts on purpose
  Result(const Error& error) : Result<std::monostate>(error) {}                 // NOLINT: converts on purpose

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

/// `message` is a sentence for people: where, what was expected, what was found. `file` and `offset`, in
/// bytes, are the place that it names, as in an Error; none if the problem has no place in a file. `advice`
/// is an Error's too.
struct Finding {
  std::string message;
  std::optional<std::string> file;
  std::optional<std::uint64_t> offset;
  Advice advice;

  /// A finding without a place, or one at the place of an error.
  Finding(std::string words) : message(std::move(words)) {}  // NOLINT: converts on purpose
  Finding(Error error)                                       // NOLINT: converts on purpose
      : message(std::move(error.message)),
        file(std::move(error.file)),
        offset(error.offset),
        advice(std::move(error.advice)) {}
};

/// Returns the message with the advice, in the words of the library or of another interface.
[[nodiscard]] inline std::string full_message(const Finding& finding, TermWords words = library_words) {
  return full_message(finding.message, finding.advice, words);
}

/// A function that is told of a problem with which work goes on.
using Warn = std::function<void(const Finding&)>;

/// All that a check has found.
struct Findings {
  std::vector<Finding> errors;    // the file is damaged, or running it would fail or do harm
  std::vector<Finding> warnings;  // the file works, but maybe not as intended
  /// The number of operators that a program calls and that etstream does not know: custom ones, those of
  /// backends and of later releases. Their arguments are not checked. The runtime needs a kernel registered
  /// for each.
  std::uint64_t unknown_operators = 0;
  /// The different names of the first 100 of these, in order.
  std::vector<std::string> unknown_operator_names = {};

  /// Returns whether there is no error; there may be warnings.
  [[nodiscard]] bool ok() const noexcept { return errors.empty(); }
};

/// Refuses a file in which verify() has found errors. Error: kCorrupt, with the first three of them and the
/// number of the others.
[[nodiscard]] ETSTREAM_EXPORT Result<void> require_sound(const std::string& file, const Findings& findings);

/// The XXH3-128 of bytes, in its canonical byte order, which is big-endian.
using ContentHash = std::array<std::byte, 16>;

}  // namespace etstream
