// SPDX-License-Identifier: BSD-3-Clause
//
// Errors in a form that tests compare.
#pragma once

#include <doctest/doctest.h>

#include <string>

#include "etstream/result.h"

namespace etstream {

inline const char* name_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "kInvalidArgument";
    case ErrorCode::kCorrupt:
      return "kCorrupt";
    case ErrorCode::kUnsupported:
      return "kUnsupported";
    case ErrorCode::kTooLarge:
      return "kTooLarge";
    case ErrorCode::kNotFound:
      return "kNotFound";
    case ErrorCode::kIo:
      return "kIo";
    case ErrorCode::kOutOfMemory:
      return "kOutOfMemory";
    case ErrorCode::kInterrupted:
      return "kInterrupted";
  }
  return "no code";
}

/// Returns a whole message, or a part of one, to compare with error_of().
inline doctest::String exactly(const std::string& message) { return message.c_str(); }
inline doctest::Contains containing(const std::string& part) { return doctest::Contains(part.c_str()); }

/// Returns "kCorrupt: MESSAGE", or "no error", to compare with the result of exactly() or containing().
template <class T>
doctest::String error_of(const Result<T>& result) {
  if (result) return "no error";
  return exactly(std::string(name_of(result.error().code)) + ": " + full_message(result.error()));
}

/// Returns the code of an error, for tests that are not about its message.
template <class T>
doctest::String code_of(const Result<T>& result) {
  return result ? "no error" : name_of(result.error().code);
}

}  // namespace etstream
