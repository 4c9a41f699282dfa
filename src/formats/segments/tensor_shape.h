// SPDX-License-Identifier: BSD-3-Clause
//
// Tables with a tensor's element type, sizes and dim_order.
#pragma once

#include <cstdint>
#include <optional>

#include "etstream/findings.h"
#include "etstream/tensor_layout.h"
#include "flatbuffer/table_reader.h"
#include "formats/segments/shared_fields.h"

namespace etstream {

/// Reads the layout from such a table, whose fields are bound. Errors: those of FlatbufferView.
[[nodiscard]] Result<TensorLayout> read_tensor_layout(const TableReader& tensor, const ShapeFields& fields);

/// Adds to `findings` the problems of the shape in such a table. Returns the size of its data in bytes;
/// nothing if the table does not tell.
[[nodiscard]] Result<std::optional<std::uint64_t>> check_shape(const TableReader& tensor,
                                                               const ShapeFields& fields, Findings& findings);

}  // namespace etstream
