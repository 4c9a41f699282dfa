// SPDX-License-Identifier: BSD-3-Clause
//
// The elements of an array that do not follow one another: a transposed or channels-last array, a view of
// every second row, an array in Fortran order, a broadcast.
#pragma once

#include <cstdint>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/result.h"

namespace etstream {

/// The places of an array's elements in a source: the element at index i is at offset + i[0] * strides[0] +
/// i[1] * strides[1] + ...
struct StridedElements {
  std::uint64_t item_size = 0;        // in bytes, from 1 to 16
  std::vector<std::uint64_t> sizes;   // by dimension, at most 64
  std::vector<std::int64_t> strides;  // by dimension, in bytes; may be 0 or negative
  std::uint64_t offset = 0;           // in bytes, of the element whose indices are all 0
};

/// Returns the strides, in bytes, of dense elements whose last dimension is innermost. The product of `sizes`
/// and `item_size` fits in 63 bits.
[[nodiscard]] std::vector<std::int64_t> dense_strides(const std::vector<std::uint64_t>& sizes,
                                                      std::uint64_t item_size);

/// Returns the elements one after another, the last dimension innermost. Bytes that lie like that are a slice
/// of `source`. Others are gathered as they are read: by windows of 2 MiB, each from as few reads of `source`
/// as its strides allow; the last window is kept. A gathered source that is gathered again is read from the
/// first source. Errors: kInvalidArgument for elements that are not inside `source`, lists of two lengths or
/// over 64 dimensions, and another item_size; kTooLarge for an array of 2^63 bytes or more.
[[nodiscard]] Result<ByteSource> gather(ByteSource source, StridedElements elements);

}  // namespace etstream
