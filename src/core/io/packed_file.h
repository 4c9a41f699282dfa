// SPDX-License-Identifier: BSD-3-Clause
//
// The original bytes of a packed file, at any place.
#pragma once

#include <string>

#include "etstream/byte_source.h"
#include "etstream/result.h"

namespace etstream {

/// Returns the error about an update that is read without the file that it was made from.
[[nodiscard]] Error needs_base(ErrorCode code, const std::string& name);

/// Returns whether each read decodes a piece of 1 MiB or more: `source` is the original of a packed file, or
/// a range of it.
[[nodiscard]] bool is_decoded(const ByteSource& source) noexcept;

}  // namespace etstream
