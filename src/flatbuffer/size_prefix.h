// SPDX-License-Identifier: BSD-3-Clause
//
// Flatbuffers with their size before them.
#pragma once

#include <string>

#include "etstream/byte_source.h"
#include "etstream/result.h"

namespace etstream {

/// The flatbuffer without the size before it. Nothing moves, as that would change how it is aligned: the
/// offset to the root comes where the size was, and the identifier behind it. `name` is what messages call
/// it. Errors: kCorrupt; those of reading.
[[nodiscard]] Result<ByteSource> without_size_prefix(const ByteSource& prefixed, const std::string& name);

}  // namespace etstream
