// SPDX-License-Identifier: BSD-3-Clause
//
// Errors about a file that is given in place of one of another kind: they name its kind, and what takes it.
//
//   return unless_other(file, {"a program (ET12)", {FileKind::kProgram}}, std::move(opened));
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/file_kind.h"
#include "etstream/result.h"
#include "formats/segments/json_content.h"

namespace etstream {

/// The files that are taken.
struct Expected {
  std::string_view what;                           // "a program (ET12)"
  std::vector<FileKind> kinds = {};                // none for JSON alone
  std::optional<JsonContent> json = std::nullopt;  // kOther: JSON of any content
};

/// Returns "a program (ET12)", "tensor data (FT01)".
[[nodiscard]] std::string with_article(FileKind kind);

/// Returns the error that `file` is of another kind than those expected, or what refuse_foreign() says of it,
/// where it is recognised: kUnsupported. Otherwise returns `error`, and has it say where the file is JSON.
[[nodiscard]] Error explain(const ByteSource& file, const Expected& expected, Error error);

/// The same of a file that is of no FileKind.
[[nodiscard]] Error explain_json(const ByteSource& file, const Expected& expected, Error error);

/// Returns what opening `file` gave, where that is an error as explain() has it.
template <class T>
[[nodiscard]] Result<T> unless_other(const ByteSource& file, const Expected& expected, Result<T> opened) {
  if (opened) return opened;
  return explain(file, expected, std::move(opened).error());
}

}  // namespace etstream
