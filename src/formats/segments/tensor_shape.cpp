// SPDX-License-Identifier: BSD-3-Clause
#include "formats/segments/tensor_shape.h"

#include "core/base/findings.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/scalar_type.h"
#include "etstream/tensor.h"
#include "formats/tensor/dimensions.h"

namespace etstream {

Result<TensorLayout> read_tensor_layout(const TableReader& tensor, const ShapeFields& fields) {
  TensorLayout layout;
  for (const BoundField* const field : {&fields.sizes, &fields.dim_order}) {
    ETSTREAM_ASSIGN(const auto vector, tensor.vector(*field));
    if (!vector || vector->count <= kMostDimensions) continue;
    return tensor.corrupt(text("at most {} dimensions in {}", kMostDimensions, field->full_name()),
                          text("{}", vector->count));
  }
  ETSTREAM_ASSIGN(layout.scalar_type, tensor.scalar<ScalarType>(fields.scalar_type));
  ETSTREAM_ASSIGN(layout.sizes, tensor.values<std::int32_t>(fields.sizes));
  ETSTREAM_ASSIGN(layout.dim_order, tensor.values<std::uint8_t>(fields.dim_order));
  return layout;
}

Result<std::optional<std::uint64_t>> check_shape(const TableReader& tensor, const ShapeFields& fields,
                                                 Findings& findings) {
  const auto error = [&](std::string_view expected, std::string_view found) {
    add_error(findings, tensor.corrupt(expected, found));
    return std::optional<std::uint64_t>();
  };
  ETSTREAM_ASSIGN(const auto sizes_vector, tensor.vector(fields.sizes));
  ETSTREAM_ASSIGN(const auto order_vector, tensor.vector(fields.dim_order));
  const std::uint64_t dimensions = sizes_vector ? sizes_vector->count : 0;
  if (!sizes_vector || dimensions > kMostDimensions) {
    return error(text("{} of at most {} dimensions", fields.sizes.full_name(), kMostDimensions),
                 sizes_vector ? std::to_string(dimensions) : "none");
  }
  if (!order_vector || order_vector->count != dimensions) {
    return error(text("{} of {} dimensions", fields.dim_order.full_name(), dimensions),
                 order_vector ? std::to_string(order_vector->count) : "none");
  }
  ETSTREAM_ASSIGN(const auto sizes, tensor.values<std::int32_t>(fields.sizes));
  ETSTREAM_ASSIGN(const auto order, tensor.values<std::uint8_t>(fields.dim_order));
  if (!is_permutation(order, dimensions))
    error(text("{} that is a permutation", fields.dim_order.full_name()), "another");
  ETSTREAM_ASSIGN(const auto type, tensor.scalar<ScalarType>(fields.scalar_type));
  const auto bytes = byte_size(type, sizes);
  if (!bytes) return error("a tensor of known type and size", bytes.error().message);
  return std::optional(*bytes);
}

}  // namespace etstream
