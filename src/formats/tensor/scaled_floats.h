// SPDX-License-Identifier: BSD-3-Clause
//
// Float32 data that is computed with while it is read: times factors, and as integers that share scales.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/result.h"
#include "etstream/tensor.h"

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

/// A symmetric quantization: the scale of a group is its largest magnitude over half of the integers' range,
/// and at least `least_scale`; an element becomes the nearest integer to its product with 1 / scale, in a tie
/// the even one, and at most the last of the range. This is how choose_qparams_affine and quantize_affine of
/// torchao 0.18 do it, and the observers of its pt2e. They compute in the type of the tensor.
struct Quantization {
  std::uint64_t group = 0;  // how many elements, one after another, share a scale
  int lowest = -128;        // of the integers
  int highest = 127;
  float least_scale = 0;
  bool in_bfloat16 = false;    // each result is rounded to bfloat16, or else is in float32
  bool high_is_first = false;  // in the byte of two integers, or else the low half is

  friend auto operator<=>(const Quantization&,
                          const Quantization&) = default;  // NOLINT(modernize-use-nullptr)
};

/// Returns the integers that the float32 in `floats` become: int8, or, if the range has 16, two a byte, each
/// less the lowest. A read takes 512 KiB of memory; groups of over 65536 elements
/// take 4 bytes each, and are read once here, for their scales. Errors: kInvalidArgument for a source that
/// does not end with a group, an odd group of integers in half bytes, and when it is read for a group that
/// has an infinity or a NaN, which names the `tensor`.
[[nodiscard]] Result<ByteSource> quantize(ByteSource floats, const Quantization& how,
                                          const std::string& tensor);

/// Returns the scales of the groups, as float32. Memory and errors: as of quantize().
[[nodiscard]] Result<ByteSource> scales_of(ByteSource floats, const Quantization& how,
                                           const std::string& tensor);

}  // namespace etstream
