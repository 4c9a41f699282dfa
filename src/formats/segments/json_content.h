// SPDX-License-Identifier: BSD-3-Clause
//
// The kinds of JSON that etstream reads, told apart by the keys that they begin with.
#pragma once

#include <optional>
#include <string_view>

#include "etstream/byte_source.h"

namespace etstream {

enum class JsonContent { kCheckpointIndex, kTestCases, kProgram, kModelConfig, kOther };

/// Returns `text` without white space and a byte order mark at its beginning.
[[nodiscard]] std::string_view trimmed(std::string_view text);

/// Returns the content of the JSON that begins with `text`; nothing if that is no JSON.
[[nodiscard]] std::optional<JsonContent> json_content(std::string_view text);

/// Does the same for a file, by its first KiB; also returns nothing for a file that can't be read.
[[nodiscard]] std::optional<JsonContent> json_content(const ByteSource& file);

}  // namespace etstream
