// SPDX-License-Identifier: BSD-3-Clause
//
// A tensor, or another input or output of a method.
//
//   etstream::Tensor image{etstream::ScalarType::kUInt8, {1, 3, 8, 8}, etstream::contiguous_dim_order(4),
//                          etstream::ByteSource::zeros(192)};
//   const std::vector<etstream::Value> inputs = {std::move(image), 3.5};
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/export.h"
#include "etstream/scalar_type.h"

namespace etstream {

/// The most dimensions that an ExecuTorch tensor can have.
inline constexpr std::size_t kMostDimensions = 16;

/// `data` holds numel(sizes) elements of `scalar_type`, little-endian, dense, in the order that `dim_order`
/// gives. A tensor without elements has no data; one without dimensions has one element.
struct Tensor {
  ScalarType scalar_type = ScalarType::kFloat32;
  std::vector<std::int32_t> sizes;      // none is negative
  std::vector<std::uint8_t> dim_order;  // the dimensions, outermost first: 0, 1, 2... where contiguous
  ByteSource data;
  /// True if nobody has asked for the order of this contiguous tensor: a plan of a bundle lays its elements
  /// out in the order that the method has.
  bool any_order = false;
};

/// Returns 0, 1, ... `dimensions` - 1: the dim_order of a contiguous tensor.
[[nodiscard]] ETSTREAM_EXPORT std::vector<std::uint8_t> contiguous_dim_order(std::size_t dimensions);

/// An argument or a result of a method. std::monostate is no value, which the format can hold but no method
/// accepts.
using Value = std::variant<std::monostate, Tensor, std::int64_t, bool, double>;

}  // namespace etstream
