// SPDX-License-Identifier: BSD-3-Clause
//
// Flatbuffers with their size before them.
#pragma once

#include <string>

#include "etstream/byte_source.h"
#include "etstream/result.h"

namespace etstream {

/// The flatbuffer without the size before it. Nothing moves, as that would change its alignment: the offset
/// to the root takes the place of the size, and the identifier follows. `name` is what messages call
/// it. Errors: kCorrupt; those of reading.
[[nodiscard]] Result<ByteSource> without_size_prefix(const ByteSource& prefixed, const std::string& name);

}  // namespace etstream
