// SPDX-License-Identifier: BSD-3-Clause
//
// Tables that say a tensor's element type, sizes and dim_order.
#pragma once

#include <cstdint>
#include <optional>

#include "etstream/findings.h"
#include "etstream/tensor_layout.h"
#include "flatbuffer/table_reader.h"
#include "formats/segments/shared_fields.h"

namespace etstream {

/// What such a table says, whose fields are bound. Errors: those of FlatbufferView.
[[nodiscard]] Result<TensorLayout> read_tensor_layout(const TableReader& tensor, const ShapeFields& fields);

/// Adds to `findings` what is wrong with the shape that such a table says, and returns how many bytes its
/// data takes; none where the table does not tell.
[[nodiscard]] Result<std::optional<std::uint64_t>> check_shape(const TableReader& tensor,
                                                               const ShapeFields& fields, Findings& findings);

}  // namespace etstream
