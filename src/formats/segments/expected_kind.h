// SPDX-License-Identifier: BSD-3-Clause
//
// Errors about a file of the wrong kind: they name its kind, and what accepts it.
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

/// The files that are accepted.
struct Expected {
  std::string_view what;                           // "a program (ET12)"
  std::vector<FileKind> kinds = {};                // none for JSON alone
  std::optional<JsonContent> json = std::nullopt;  // kOther: JSON of any content
};

/// Describes them: "a program (ET12)", "tensor data (FT01)".
[[nodiscard]] std::string with_article(FileKind kind);

/// Returns a kUnsupported error if `file` is recognised as another kind than those expected, or as a file
/// that refuse_foreign() refuses. Otherwise returns `error`, and adds that the file is JSON if it is.
[[nodiscard]] Error explain(const ByteSource& file, const Expected& expected, Error error);

/// Does the same for a file that is of no FileKind.
[[nodiscard]] Error explain_json(const ByteSource& file, const Expected& expected, Error error);

/// Returns the result of opening `file`; an error is as explain() makes it.
template <class T>
[[nodiscard]] Result<T> unless_other(const ByteSource& file, const Expected& expected, Result<T> opened) {
  if (opened) return opened;
  return explain(file, expected, std::move(opened).error());
}

}  // namespace etstream
