// SPDX-License-Identifier: BSD-3-Clause
//
// TensorLayout: how to read the bytes of a tensor.
//
//   const etstream::TensorLayout weight{etstream::ScalarType::kFloat32, {2, 3}, {0, 1}};
//   const auto bytes = etstream::byte_size(weight.scalar_type, weight.sizes);
//   std::printf("%zu bytes\n", static_cast<std::size_t>(bytes.value()));
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "etstream/export.h"
#include "etstream/scalar_type.h"

namespace etstream {

/// The type and the shape of a tensor, and the order of its elements.
struct TensorLayout {
  ScalarType scalar_type = ScalarType::kFloat32;
  std::vector<std::int32_t> sizes;
  std::vector<std::uint8_t> dim_order;  // the dimensions, outermost first

  bool operator==(const TensorLayout&) const = default;
};

/// Describes the layout for people: "float32 [2, 3]".
[[nodiscard]] ETSTREAM_EXPORT std::string describe(const TensorLayout& layout);

}  // namespace etstream
