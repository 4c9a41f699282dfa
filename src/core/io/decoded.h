// SPDX-License-Identifier: BSD-3-Clause
//
// A test for sources whose reads cost more than their bytes.
#pragma once

#include "etstream/byte_source.h"

namespace etstream {

/// Returns whether each read decodes a piece of 1 MiB or more: `source` is the original of a packed file, or
/// a range of it.
[[nodiscard]] bool is_decoded(const ByteSource& source) noexcept;

}  // namespace etstream
