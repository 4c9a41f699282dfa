// SPDX-License-Identifier: BSD-3-Clause
//
// The fields of XNNPACK's graphs (schema/xnnpack_graph.fbs), and those of any node by the parts of their
// names.
#pragma once

#include <optional>
#include <vector>

#include "xnnpack_graph_fields_generated.h"

namespace etstream::xnnpack {

/// The fields of scales by channel, and by groups of a channel's elements.
struct ScaleFields {
  template <class Table>
  ScaleFields(const Table& table)  // NOLINT: converts
      : scale(table.scale), channel_dim(table.channel_dim), scale_buffer_idx(table.scale_buffer_idx) {}
  BoundField scale;
  BoundField channel_dim;
  BoundField scale_buffer_idx;
};

/// The fields of a node of any kind.
struct NodeFields {
  [[nodiscard]] static bool is_output(const BoundField& field) { return field.name().starts_with("output"); }

  std::vector<BoundField> ids;  // of tensors, outputs among them
  std::vector<BoundField> outputs;
  std::vector<BoundField> lists;         // with an entry a dimension
  std::optional<BoundField> dimensions;  // how many
  std::optional<BoundField> input;       // has as many, where the node does not say how many
  std::optional<BoundField> first_input;
  std::optional<BoundField> filter;  // weights that XNNPACK packs
  std::optional<BoundField> bias;    // packed with them
};

/// The fields of all tables, bound to a schema, which outlives them.
struct Fields : xnnpack_graph::Fields {
  explicit Fields(const Schema& schema) : xnnpack_graph::Fields(schema) {
    for (std::size_t table = 0; table < schema.tables().size(); ++table) {
      NodeFields& node = nodes.emplace_back();
      for (std::size_t i = 0; i < schema.tables()[table].fields.size(); ++i) {
        const BoundField field{&schema, table, i};
        const bool is_id = field.name().ends_with("_id");
        if (is_id) node.ids.push_back(field);
        if (is_id && NodeFields::is_output(field)) node.outputs.push_back(field);
        if (field.type().kind == FieldKind::kInlineVector) node.lists.push_back(field);
        if (field.name() == xnn_static_reshape.num_dims.name()) node.dimensions = field;
        if (field.name() == xnn_static_reshape.input_id.name()) node.input = field;
        if (field.name() == xnn_fully_connected.input1_id.name()) node.first_input = field;
        if (field.name() == xnn_fully_connected.filter_id.name()) node.filter = field;
        if (field.name() == xnn_fully_connected.bias_id.name()) node.bias = field;
      }
    }
  }
  std::vector<NodeFields> nodes;  // by their tables
};

}  // namespace etstream::xnnpack
