// SPDX-License-Identifier: BSD-3-Clause
//
// Whether a layout gives a file that there is.
#pragma once

#include "etstream/layout.h"
#include "etstream/result.h"

namespace etstream {

/// Whether both have the same bytes. Errors: those of reading.
[[nodiscard]] Result<bool> same_bytes(const ByteSource& a, const ByteSource& b);

/// Whether writing `layout` gives `file`. Extents that are ranges of `file` where they lie are taken as
/// equal, all else is read and compared. Errors: those of reading.
[[nodiscard]] Result<bool> gives_same_bytes(const Layout& layout, const ByteSource& file);

}  // namespace etstream
