// SPDX-License-Identifier: BSD-3-Clause
//
// The tables and fields of XNNPACK's graphs that are read (schema/xnnpack_graph.fbs).
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "formats/segments/shared_fields.h"

namespace etstream::xnnpack {

/// The fields of scales by channel, and by groups of a channel's elements.
struct ScaleFields : BoundTable {
  ScaleFields(const Schema& schema, std::string_view table) : BoundTable(schema, table) {}
  BoundField scale = field("scale");
  BoundField channel = field("channel_dim");
  BoundField constant = field("scale_buffer_idx");
};

/// The fields of a node with weights.
struct WeightedFields : BoundTable {
  WeightedFields(const Schema& schema, std::string_view table) : BoundTable(schema, table) {}
  BoundField filter = field("filter_id");
  BoundField bias = field("bias_id");
  BoundField flags = field("flags");
};

/// The fields of a node of any kind, found by their names.
struct NodeFields {
  NodeFields(const Schema& schema, std::size_t table) {
    const std::vector<FieldType>& all = schema.tables()[table].fields;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const BoundField field{&schema, table, i};
      const bool is_id = field.name().ends_with("_id");
      if (is_id) ids.push_back(field);
      if (is_id && is_output(field)) outputs.push_back(field);
      if (all[i].kind == FieldKind::kInlineVector) lists.push_back(field);
      if (field.name() == "num_dims") dimensions = field;
      if (field.name() == "input_id") input = field;
    }
  }
  [[nodiscard]] static bool is_output(const BoundField& field) { return field.name().starts_with("output"); }

  std::vector<BoundField> ids;  // of tensors, outputs among them
  std::vector<BoundField> outputs;
  std::vector<BoundField> lists;         // with an entry a dimension
  std::optional<BoundField> dimensions;  // how many
  std::optional<BoundField> input;       // has as many, where the node does not say how many
};

/// All these fields, bound to `schema`, which outlives them.
struct Fields {
  explicit Fields(const Schema& given) : schema(given) {
    for (std::size_t i = 0; i < schema.tables().size(); ++i) nodes.emplace_back(schema, i);
  }
  const Schema& schema;
  struct : FieldsOf<"XNNGraph"> {
    BoundField externals = field("num_externs");
    BoundField constants = field("constant_data");
    BoundField values = field("xvalues");
    BoundField nodes = field("xnodes");
  } graph{schema};
  struct : FieldsOf<"ConstantDataOffset"> {
    BoundField offset = field("offset");
    BoundField size = field("size");
    BoundField key = field("named_key");
  } constant{schema};
  OneField value{schema, "XValue", "xvalue_union"};
  OneField node{schema, "XNode", "xnode_union"};
  struct : FieldsOf<"XNNTensorValue"> {
    BoundField datatype = field("datatype");
    BoundField dims = field("dims");
    BoundField constant = field("constant_buffer_idx");
    BoundField external_id = field("external_id");
    BoundField flags = field("flags");
    BoundField id = field("id_out");
  } tensor{schema};
  struct : FieldsOf<"XNNQuantizedTensorValue"> {
    BoundField tensor = field("tensor_value");
    BoundField params = field("quant_params");
  } quantized{schema};
  ScaleFields by_channel{schema, "PerChannelQuant"};
  struct : ScaleFields {
    BoundField group = field("group_size");
  } by_group{{schema, "PerChannelGroupQuant"}};
  WeightedFields linear{schema, "XNNFullyConnected"};
  struct : WeightedFields {
    /// The numbers whose product is the number of the filter's elements. The first two give the channels.
    std::vector<BoundField> factors = {field("groups"), field("group_output_channels"),
                                       field("kernel_height"), field("kernel_width"),
                                       field("group_input_channels")};
  } convolution{{schema, "_XNNNodeConv"}};
  std::vector<NodeFields> nodes;  // by their tables
};

}  // namespace etstream::xnnpack
