// SPDX-License-Identifier: BSD-3-Clause
//
// The tables and fields of tensor data files that are read. What writes them has schema/flat_tensor.fbs's
// names in its bindings (tensor_data.cpp).
#pragma once

#include "container/shared_fields.h"

namespace etstream::ptd {

struct RootFields : BoundTable {
  explicit RootFields(const Schema& schema) : BoundTable(schema, "FlatTensor") {}
  BoundField version = field("version");
  BoundField segments = field("segments");
  BoundField named_data = field("named_data");
};

struct NamedTensorFields : NamedDataFields {
  using NamedDataFields::NamedDataFields;
  BoundField tensor_layout = field("tensor_layout");
};

/// Bound to `schema`, which outlives it.
struct TensorDataFields {
  explicit TensorDataFields(const Schema& schema)
      : root(schema), segment(schema), named_data(schema), layout(schema, "TensorLayout") {}
  RootFields root;
  DataSegmentFields segment;
  NamedTensorFields named_data;
  ShapeFields layout;
};

}  // namespace etstream::ptd
