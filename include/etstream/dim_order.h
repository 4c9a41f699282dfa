// SPDX-License-Identifier: BSD-3-Clause
//
// The order in which a tensor's elements lie.
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

/// Whether the data of tensors of `sizes` lies alike under both orders, which are permutations of the
/// dimensions: those of size 1 may stand anywhere, and where there is no element every order is alike.
[[nodiscard]] ETSTREAM_EXPORT bool lie_alike(const std::vector<std::int32_t>& sizes,
                                             const std::vector<std::uint8_t>& one,
                                             const std::vector<std::uint8_t>& other);

/// The same tensor with its data in the order that `dim_order` gives: shared where it lies alike, otherwise
/// moved in memory, which takes twice its size while it is. Errors: kInvalidArgument for an order that is not
/// a permutation of the dimensions, an unknown dtype or data that is not as long as the shape says; those of
/// reading; kOutOfMemory.
[[nodiscard]] ETSTREAM_EXPORT Result<Tensor> with_dim_order(const Tensor& tensor,
                                                            std::vector<std::uint8_t> dim_order);

}  // namespace etstream
