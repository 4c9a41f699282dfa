// SPDX-License-Identifier: BSD-3-Clause
//
// The kinds of files by the bytes that they begin with.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "etstream/file_kind.h"

namespace etstream {

/// The number of bytes that known_kind() looks at.
inline constexpr std::size_t kKindBytes = 9;

/// Returns the kind of a file that begins with `bytes`; nothing if it has no identifier of ours.
[[nodiscard]] std::optional<FileKind> known_kind(std::string_view bytes) noexcept;

}  // namespace etstream
