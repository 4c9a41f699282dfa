// SPDX-License-Identifier: BSD-3-Clause
#include "container/tensor_shape.h"

#include "base/text.h"
#include "base/try.h"
#include "container/findings.h"
#include "etstream/scalar_type.h"
#include "etstream/tensor.h"
#include "tensor/dimensions.h"

namespace etstream {

Result<TensorLayout> read_tensor_layout(const TableReader& tensor) {
  TensorLayout layout;
  for (const std::string_view name : {"sizes", "dim_order"}) {
    ETSTREAM_ASSIGN(const auto vector, tensor.vector(name));
    if (!vector || vector->count <= kMostDimensions) continue;
    return tensor.corrupt(text("at most {} dimensions in {}.{}", kMostDimensions, tensor.type_name(), name),
                          text("{}", vector->count));
  }
  ETSTREAM_ASSIGN(layout.scalar_type, tensor.scalar<ScalarType>("scalar_type"));
  ETSTREAM_ASSIGN(layout.sizes, tensor.values<std::int32_t>("sizes"));
  ETSTREAM_ASSIGN(layout.dim_order, tensor.values<std::uint8_t>("dim_order"));
  return layout;
}

Result<std::optional<std::uint64_t>> check_shape(const FlatbufferView& view, const TableReader& tensor,
                                                 Findings& findings) {
  const auto error = [&](std::string_view expected, std::string_view found) {
    add_error(findings, view.corrupt(tensor.position(), expected, found).message);
    return std::optional<std::uint64_t>();
  };
  const std::string& table = tensor.type_name();
  ETSTREAM_ASSIGN(const auto sizes_vector, tensor.vector("sizes"));
  ETSTREAM_ASSIGN(const auto order_vector, tensor.vector("dim_order"));
  const std::uint64_t dimensions = sizes_vector ? sizes_vector->count : 0;
  if (!sizes_vector || dimensions > kMostDimensions) {
    return error(text("{}.sizes of at most {} dimensions", table, kMostDimensions),
                 sizes_vector ? std::to_string(dimensions) : "none");
  }
  if (!order_vector || order_vector->count != dimensions) {
    return error(text("{}.dim_order of {} dimensions", table, dimensions),
                 order_vector ? std::to_string(order_vector->count) : "none");
  }
  ETSTREAM_ASSIGN(const auto sizes, tensor.values<std::int32_t>("sizes"));
  ETSTREAM_ASSIGN(const auto order, tensor.values<std::uint8_t>("dim_order"));
  if (!is_permutation(order, dimensions)) error(text("{}.dim_order that is a permutation", table), "another");
  ETSTREAM_ASSIGN(const auto type, tensor.scalar<ScalarType>("scalar_type"));
  const auto bytes = byte_size(type, sizes);
  if (!bytes) return error("a tensor of known type and size", bytes.error().message);
  return std::optional(*bytes);
}

}  // namespace etstream
