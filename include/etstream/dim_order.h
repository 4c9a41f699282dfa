// SPDX-License-Identifier: BSD-3-Clause
//
// The order in which a tensor's elements are stored.
//
//   const etstream::Tensor nchw{etstream::ScalarType::kUInt8, {1, 3, 8, 8}, {0, 1, 2, 3},
//                               etstream::ByteSource::zeros(192)};
//   const auto channels_last = etstream::with_dim_order(nchw, {0, 2, 3, 1});
//   if (!channels_last) return channels_last.error();
#pragma once

#include <cstdint>
#include <vector>

#include "etstream/export.h"
#include "etstream/result.h"
#include "etstream/tensor.h"

namespace etstream {

/// Returns whether the elements of tensors of `sizes` are stored in the same order under both dim_orders,
/// which are permutations of the dimensions: a dimension of size 1 may be anywhere, and without elements all
/// orders are the same.
[[nodiscard]] ETSTREAM_EXPORT bool lie_alike(const std::vector<std::int32_t>& sizes,
                                             const std::vector<std::uint8_t>& one,
                                             const std::vector<std::uint8_t>& other);

/// Returns the tensor with its data in the order of `dim_order`: the same source if that is the same order,
/// otherwise one that reads the elements from where they lie, in that order, in bounded memory. Errors:
/// kInvalidArgument for an order that is not a permutation of the dimensions, an unknown dtype or data that
/// does not have the size that the shape implies; kTooLarge.
[[nodiscard]] ETSTREAM_EXPORT Result<Tensor> with_dim_order(const Tensor& tensor,
                                                            std::vector<std::uint8_t> dim_order);

}  // namespace etstream
