// SPDX-License-Identifier: BSD-3-Clause
//
// Whether bytes at two places are the same, or those of a plan and of a file.
#pragma once

#include <cstdint>
#include <optional>

#include "etstream/file_plan.h"
#include "etstream/result.h"

namespace etstream {

/// Where the bytes of both differ first, or the shorter one ends; none where they are the same. Errors: those
/// of reading.
[[nodiscard]] Result<std::optional<std::uint64_t>> first_difference(const ByteSource& a, const ByteSource& b);

/// Whether both have the same bytes. Errors: those of reading.
[[nodiscard]] Result<bool> same_bytes(const ByteSource& a, const ByteSource& b);

/// Whether writing `plan` gives `file`. Extents that are ranges of `file` where they lie are taken as
/// equal, all else is read and compared. Errors: those of reading.
[[nodiscard]] Result<bool> gives_same_bytes(const FilePlan& plan, const ByteSource& file);

}  // namespace etstream
