// SPDX-License-Identifier: BSD-3-Clause
//
// The rows of query and key projections in the order that interleaved rotary embeddings take.
#pragma once

#include <cstdint>

#include "etstream/byte_source.h"

namespace etstream {

/// Reorders `rows`, which are heads of `head_dim` rows of `row_size` bytes each: row j + s * head_dim / 2 of
/// each head (s is 0 or 1) becomes its row 2 * j + s. `rows` is read when the result is, in at most 256 KiB
/// of memory. `head_dim` is even; neither it nor `row_size` is 0, and `rows` is whole heads.
[[nodiscard]] ByteSource interleave_rope(ByteSource rows, std::uint64_t head_dim, std::uint64_t row_size);

}  // namespace etstream
