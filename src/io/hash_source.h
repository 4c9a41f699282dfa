// SPDX-License-Identifier: BSD-3-Clause
//
// The hash of all bytes of a source.
#pragma once

#include "base/content_hash.h"
#include "etstream/byte_source.h"
#include "etstream/result.h"

namespace etstream {

/// Reads all of `source` through 1 MiB of memory. Errors: those of reading.
[[nodiscard]] Result<ContentHash> hash_of(const ByteSource& source);

}  // namespace etstream
