// SPDX-License-Identifier: BSD-3-Clause
//
// The fields of tables that several formats have.
#pragma once

#include <string_view>

#include "flatbuffer/table_reader.h"

namespace etstream {

/// The fields of a table with a tensor's shape, whatever its name is.
struct ShapeFields : BoundTable {
  ShapeFields(const Schema& schema, std::string_view table) : BoundTable(schema, table) {}
  BoundField scalar_type = field("scalar_type");
  BoundField sizes = field("sizes");
  BoundField dim_order = field("dim_order");
};

/// The fields of the segments that programs and tensor data files list.
struct DataSegmentFields : BoundTable {
  explicit DataSegmentFields(const Schema& schema) : BoundTable(schema, "DataSegment") {}
  BoundField offset = field("offset");
  BoundField size = field("size");
};

/// The fields of data under a key.
struct NamedDataFields : BoundTable {
  explicit NamedDataFields(const Schema& schema) : BoundTable(schema, "NamedData") {}
  BoundField key = field("key");
  BoundField segment_index = field("segment_index");
};

/// The field of a table with one field: a value, or its content if it is no tensor.
struct OneField : BoundTable {
  OneField(const Schema& schema, std::string_view table, std::string_view only)
      : BoundTable(schema, table), content(field(only)) {}
  BoundField content;
};

}  // namespace etstream
