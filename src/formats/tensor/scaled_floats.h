// SPDX-License-Identifier: BSD-3-Clause
//
// Float32 data times factors, multiplied while it is read.
#pragma once

#include <cstdint>
#include <vector>

#include "etstream/byte_source.h"

namespace etstream {

/// Returns `floats`, which are float32, times the factors of their channels, as they are read. A channel has
/// `inner` elements one after another, and the next channel follows; behind the last one, the first begins
/// again. A read takes 64 KiB of memory.
[[nodiscard]] ByteSource scale_channels(ByteSource floats, std::vector<float> factors, std::uint64_t inner);

/// The blocks that a matrix is divided into, row by row.
struct MatrixBlocks {
  std::uint64_t columns = 0;        // of the matrix, whole blocks
  std::uint64_t block_rows = 0;     // of a block
  std::uint64_t block_columns = 0;  // of a block
};

/// Returns a matrix, `floats`, times the factors of its blocks, as they are read. Both are float32, row by
/// row. A read takes 128 KiB of memory.
[[nodiscard]] ByteSource scale_blocks(ByteSource floats, ByteSource factors, const MatrixBlocks& blocks);

}  // namespace etstream
