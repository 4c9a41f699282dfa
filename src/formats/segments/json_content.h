// SPDX-License-Identifier: BSD-3-Clause
//
// JSON that etstream reads, told apart by the keys that it begins with.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "etstream/byte_source.h"

namespace etstream {

enum class JsonContent { kCheckpointIndex, kTestCases, kProgram, kModelConfig, kOther };

/// Returns `text` without the white space, and the byte order mark, that it begins with.
[[nodiscard]] std::string_view trimmed(std::string_view text);

/// Returns the keys of a JSON object that `text` begins with, as they are spelled there.
[[nodiscard]] std::vector<std::string_view> json_keys(std::string_view text);

/// Returns what JSON holds that begins with `text`; none where that is no JSON.
[[nodiscard]] std::optional<JsonContent> json_content(std::string_view text);

/// The same of a file, by its first KiB; none also for one that can't be read.
[[nodiscard]] std::optional<JsonContent> json_content(const ByteSource& file);

}  // namespace etstream
