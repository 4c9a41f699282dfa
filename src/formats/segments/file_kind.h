// SPDX-License-Identifier: BSD-3-Clause
//
// The kinds of files by the bytes that they begin with, those of JSON by their keys, and files that people
// mistake for a model. Errors about a file of the wrong kind name its kind, and what accepts it:
//
//   return unless_other(file, {"a program (ET12)", {FileKind::kProgram}}, std::move(opened));
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/file_kind.h"
#include "etstream/result.h"

namespace etstream {

/// The kinds of JSON that etstream reads.
enum class JsonContent { kCheckpointIndex, kTestCases, kProgram, kModelConfig, kOther };

/// Returns the content of the JSON that begins with `text`; nothing if that is no JSON.
[[nodiscard]] std::optional<JsonContent> json_content(std::string_view text);

/// Does the same for a file, by its first KiB; also returns nothing for a file that can't be read.
[[nodiscard]] std::optional<JsonContent> json_content(const ByteSource& file);

/// The number of bytes that known_kind() looks at.
inline constexpr std::size_t kKindBytes = 9;

/// Returns the kind of a file that begins with `bytes`; nothing if it has no identifier of ours.
[[nodiscard]] std::optional<FileKind> known_kind(std::string_view bytes) noexcept;

/// Refuses a file that is recognised as none of FileKind: an empty file, a Git LFS pointer, an HTML page, an
/// error as JSON, XML or text, a compressed file. Reads only the beginning, and the last bytes
/// of a file whose beginning has no identifier. Accepts what it does not recognise. Errors: kUnsupported,
/// which says what it is and what to do; those of reading.
[[nodiscard]] Result<void> refuse_foreign(const ByteSource& file);

/// Returns whether `file` is all of a file or of a block of bytes. A part is no download, and has no name of
/// its own.
[[nodiscard]] bool is_whole_file(const ByteSource& file);

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
