// SPDX-License-Identifier: BSD-3-Clause
#include "python/errors.h"

#include <string_view>

namespace etstream::python {
namespace {

thread_local std::exception_ptr kept_exception;

const char* class_of(const Error& error) {
  switch (error.code) {
    case ErrorCode::kInvalidArgument:
      return "InvalidArgumentError";
    case ErrorCode::kCorrupt:
      return "CorruptError";
    case ErrorCode::kUnsupported:
      return "UnsupportedError";
    case ErrorCode::kTooLarge:
      return "TooLargeError";
    case ErrorCode::kNotFound:
      return error.system_code != 0 ? "NoSuchFileError" : "NoSuchNameError";
    case ErrorCode::kIo:
      return "IoError";
    case ErrorCode::kOutOfMemory:
      return "OutOfMemoryError";
    case ErrorCode::kInterrupted:
      break;
  }
  return "Error";
}

}  // namespace

nb::object decoded(std::string_view words) {
  return nb::steal(PyUnicode_DecodeFSDefaultAndSize(words.data(), static_cast<Py_ssize_t>(words.size())));
}

void raise(const Error& error) {
  const nb::object type = nb::module_::import_("etstream._errors").attr(class_of(error));
  const nb::object exception = type(decoded(error.message));
  if (error.file) exception.attr("filename") = decoded(*error.file);
  if (error.offset) exception.attr("offset") = *error.offset;
  // With one argument an OSError has none of its own.
  if (error.system_code != 0 && PyObject_IsInstance(exception.ptr(), PyExc_OSError) == 1) {
    exception.attr("errno") = error.system_code;
  }
  PyErr_SetObject(type.ptr(), exception.ptr());
  throw nb::python_error();
}

Error keep_exception() {
  kept_exception = std::current_exception();
  return {ErrorCode::kInterrupted, "a Python function failed"};
}

void raise_kept() {
  if (kept_exception) std::rethrow_exception(std::exchange(kept_exception, nullptr));
}

LibraryCall::LibraryCall() : outer_(std::exchange(kept_exception, nullptr)) {}
LibraryCall::~LibraryCall() { kept_exception = std::move(outer_); }

}  // namespace etstream::python
