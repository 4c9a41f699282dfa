// SPDX-License-Identifier: BSD-3-Clause
#include "python/errors.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <iterator>

#include "python/bindings.h"

namespace etstream::python {
namespace {

thread_local std::exception_ptr kept_exception;
std::atomic<std::uint64_t> turn = 0;

/// Returns the class to raise, by the error's code.
constexpr const char* kClasses[] = {"InvalidArgumentError", "CorruptError",  "UnsupportedError",
                                    "TooLargeError",        "NotFoundError", "IoError",
                                    "OutOfMemoryError",     "Error"};
static_assert(std::size(kClasses) == static_cast<std::size_t>(ErrorCode::kInterrupted) + 1);

const char* class_of(const Error& error) {
  if (error.code != ErrorCode::kNotFound) return kClasses[static_cast<std::size_t>(error.code)];
  return error.system_code != 0 ? "NoSuchFileError" : "NoSuchNameError";
}

}  // namespace

std::string_view argument_words(AdviceTerm term) {
  static constexpr std::pair<AdviceTerm, std::string_view> kWords[] = {
      {AdviceTerm::kAllowOpaque, "opaque=True"},
      {AdviceTerm::kExtractConstants, "etstream.pte()"},
      {AdviceTerm::kBase, "base to etstream.unpack()"},
      {AdviceTerm::kCheckBundle, "etstream.verify() of a bundle that is made with unchecked=True"},
      {AdviceTerm::kMoveConstantsOut, "constants_to"},
      {AdviceTerm::kNoIdentifier, "identifier=False"},
      {AdviceTerm::kNoSync, "sync=False"},
      {AdviceTerm::kVerify, "etstream.verify()"},
  };
  const auto found = std::ranges::find(kWords, term, [](const auto& each) { return each.first; });
  return found != std::end(kWords) ? found->second : library_words(term);
}

void raise(const Error& error) {
  const nb::object type = nb::module_::import_("etstream._errors").attr(class_of(error));
  const nb::object exception = type(full_message(error, argument_words));
  if (error.file) exception.attr("filename") = *error.file;
  if (error.offset) exception.attr("offset") = *error.offset;
  // An OSError with one argument has no errno of its own.
  if (error.system_code != 0 && PyObject_IsInstance(exception.ptr(), PyExc_OSError) == 1) {
    exception.attr("errno") = error.system_code;
  }
  PyErr_SetObject(type.ptr(), exception.ptr());
  throw nb::python_error();
}

std::uint64_t python_turn() noexcept { return turn.load(std::memory_order_acquire); }
void next_python_turn() noexcept { turn.fetch_add(1, std::memory_order_acq_rel); }

Error keep_exception() {
  kept_exception = std::current_exception();
  return {ErrorCode::kInterrupted, "a Python function failed"};
}

void raise_kept() {
  if (kept_exception) std::rethrow_exception(std::exchange(kept_exception, nullptr));
}

LibraryCall::LibraryCall() : outer_(std::exchange(kept_exception, nullptr)) {}
LibraryCall::~LibraryCall() { kept_exception = std::move(outer_); }

Result<void> check_signals() {
  return with_gil([]() -> Result<void> {
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    return {};
  });
}

Result<void> check_signals_at_times() {
  using Clock = std::chrono::steady_clock;
  thread_local Clock::time_point next;
  const auto now = Clock::now();
  if (now < next) return {};
  next = now + std::chrono::milliseconds(100);
  return check_signals();
}

}  // namespace etstream::python
