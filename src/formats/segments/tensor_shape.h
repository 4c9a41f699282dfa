// SPDX-License-Identifier: BSD-3-Clause
//
// Tables with a tensor's element type, sizes and dim_order.
#pragma once

#include <cstdint>
#include <optional>

#include "etstream/findings.h"
#include "etstream/tensor_layout.h"
#include "flatbuffer/table_reader.h"

namespace etstream {

/// The fields of a tensor's shape.
struct ShapeFields {
  template <class Table>
  ShapeFields(const Table& table)  // NOLINT: converts
      : scalar_type(table.scalar_type), sizes(table.sizes), dim_order(table.dim_order) {}
  BoundField scalar_type;
  BoundField sizes;
  BoundField dim_order;
};

/// Reads the layout from such a table, whose fields are bound. Errors: those of FlatbufferView.
[[nodiscard]] Result<TensorLayout> read_tensor_layout(const TableReader& tensor, const ShapeFields& fields);

/// Adds to `findings` the problems of the shape in such a table. Returns the size of its data in bytes;
/// nothing if the table does not tell.
[[nodiscard]] Result<std::optional<std::uint64_t>> check_shape(const TableReader& tensor,
                                                               const ShapeFields& fields, Findings& findings);

}  // namespace etstream
