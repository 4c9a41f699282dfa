// SPDX-License-Identifier: BSD-3-Clause
//
// The fields that tables of several schemas have. Each is made from such a table's fields.
#pragma once

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

/// The fields of a segment that programs and tensor data files list.
struct DataSegmentFields {
  template <class Table>
  DataSegmentFields(const Table& table) : offset(table.offset), size(table.size) {}  // NOLINT: converts
  BoundField offset;
  BoundField size;
};

}  // namespace etstream
