// SPDX-License-Identifier: BSD-3-Clause
//
// The original bytes of a packed file, at any place.
#pragma once

#include <string>

#include "core/packed/packed_format.h"
#include "etstream/byte_source.h"
#include "etstream/packed_file.h"
#include "etstream/result.h"

namespace etstream {

namespace packed {

/// Returns the original bytes of `file`, of which all has been checked but its pieces.
[[nodiscard]] ByteSource original_bytes(ByteSource file, const Footer& footer);

[[nodiscard]] PackedSummary summary_of(const ByteSource& file, const Footer& footer) noexcept;

/// Returns the error about an update that is read without the file that it was made from.
[[nodiscard]] Error needs_base(ErrorCode code, const std::string& name);

}  // namespace packed

/// Returns whether each read decodes a piece of 1 MiB or more: `source` is the original of a packed file, or
/// a range of it.
[[nodiscard]] bool is_decoded(const ByteSource& source) noexcept;

}  // namespace etstream
