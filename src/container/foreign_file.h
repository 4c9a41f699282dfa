// SPDX-License-Identifier: BSD-3-Clause
//
// Files that people take for a model's: what a download gives in place of one, compressed files, and formats
// of other tools.
#pragma once

#include <string_view>
#include <utility>

#include "etstream/byte_source.h"
#include "etstream/result.h"

namespace etstream {

/// Refuses a file that is recognised as something else than all kinds of FileKind: an empty file, a Git LFS
/// pointer, an HTML page, an error as JSON, XML or text, a compressed file, an archive. Reads the beginning
/// alone. Does not refuse what it does not recognise. Errors: kUnsupported, which says what it is and what to
/// do; those of reading.
[[nodiscard]] Result<void> refuse_foreign(const ByteSource& file);

/// Returns "; it is JSON" for a file that begins so and is of no kind that is JSON: the end of an error. ""
/// for others.
[[nodiscard]] std::string_view if_json(const ByteSource& file);

/// Returns what opening `file` gave. An error that says it is not of that kind becomes what the file is
/// instead, where that is recognised.
template <class T>
[[nodiscard]] Result<T> unless_foreign(const ByteSource& file, Result<T> opened) {
  if (opened || opened.error().code == ErrorCode::kIo) return opened;
  const auto recognised = refuse_foreign(file);
  if (!recognised && recognised.error().code == ErrorCode::kUnsupported) return recognised.error();
  Error error = std::move(opened).error();
  error.message += if_json(file);
  return error;
}

}  // namespace etstream
