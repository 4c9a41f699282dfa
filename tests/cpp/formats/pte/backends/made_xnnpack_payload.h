// SPDX-License-Identifier: BSD-3-Clause
//
// XNNPACK's payloads, made by hand.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "file_bytes.h"
#include "xnnpack_graph_generated.h"

namespace etstream::made_xnnpack {

/// Returns a graph without constants.
inline xnnpack_graph::XNNGraphT empty_graph() {
  xnnpack_graph::XNNGraphT graph;
  // The first constant is a placeholder.
  graph.constant_data.push_back(std::make_unique<xnnpack_graph::ConstantDataOffsetT>());
  return graph;
}

/// Adds a constant, and returns its number.
inline std::uint32_t add_constant(xnnpack_graph::XNNGraphT& graph, const std::string& key,
                                  std::uint64_t size) {
  graph.constant_data.push_back(std::make_unique<xnnpack_graph::ConstantDataOffsetT>());
  graph.constant_data.back()->named_key = key;
  graph.constant_data.back()->size = size;
  return static_cast<std::uint32_t>(graph.constant_data.size()) - 1;
}

/// Adds a constant that lies in the payload, behind the graph.
inline std::uint32_t add_inner_constant(xnnpack_graph::XNNGraphT& graph, std::uint64_t offset,
                                        std::uint64_t size) {
  const std::uint32_t number = add_constant(graph, "", size);
  graph.constant_data.back()->offset = offset;
  return number;
}

inline xnnpack_graph::XNNTensorValueT tensor_of(std::uint32_t id, xnnpack_graph::XNNDatatype datatype,
                                                std::vector<std::uint32_t> dims, std::uint32_t constant) {
  xnnpack_graph::XNNTensorValueT out;
  out.id_out = id;
  out.datatype = datatype;
  out.dims = std::move(dims);
  out.constant_buffer_idx = constant;
  return out;
}

inline void add_value(xnnpack_graph::XNNGraphT& graph, xnnpack_graph::XNNTensorValueT tensor) {
  graph.xvalues.push_back(std::make_unique<xnnpack_graph::XValueT>());
  graph.xvalues.back()->xvalue_union.Set(std::move(tensor));
}

/// Adds a value whose scales these are.
template <class Params>
void add_scaled(xnnpack_graph::XNNGraphT& graph, const xnnpack_graph::XNNTensorValueT& tensor,
                Params params) {
  xnnpack_graph::XNNQuantizedTensorValueT quantized;
  quantized.tensor_value = std::make_unique<xnnpack_graph::XNNTensorValueT>(tensor);
  quantized.quant_params.Set(std::move(params));
  graph.xvalues.push_back(std::make_unique<xnnpack_graph::XValueT>());
  graph.xvalues.back()->xvalue_union.Set(std::move(quantized));
}

/// Adds a value whose scales are a constant.
template <class Params>
void add_quantized(xnnpack_graph::XNNGraphT& graph, const xnnpack_graph::XNNTensorValueT& tensor,
                   std::uint32_t scales) {
  Params params;
  params.scale_buffer_idx = scales;
  add_scaled(graph, tensor, std::move(params));
}

template <class Node>
void add_node(xnnpack_graph::XNNGraphT& graph, xnnpack_graph::XNodeUnion type, Node node) {
  graph.xnodes.push_back(std::make_unique<xnnpack_graph::XNodeT>());
  graph.xnodes.back()->xnode_union.type = type;
  graph.xnodes.back()->xnode_union.value = new Node(std::move(node));
}

inline void add_linear(xnnpack_graph::XNNGraphT& graph, std::uint32_t filter, std::uint32_t bias,
                       std::uint32_t output, std::uint32_t input = 0) {
  xnnpack_graph::XNNFullyConnectedT linear;
  linear.input1_id = input;
  linear.filter_id = filter;
  linear.bias_id = bias;
  linear.output_id = output;
  add_node(graph, xnnpack_graph::XNodeUnion_XNNFullyConnected, linear);
}

inline void add_convolution(xnnpack_graph::XNNGraphT& graph, std::uint32_t filter, std::uint32_t bias,
                            std::uint32_t output) {
  xnnpack_graph::_XNNNodeConvT convolution;
  convolution.filter_id = filter;
  convolution.bias_id = bias;
  convolution.output_id = output;
  add_node(graph, xnnpack_graph::XNodeUnion_XNNConv2d, convolution);
}

/// Returns the payload with the graph, and behind it the constants that lie in it.
inline std::string payload_of(const xnnpack_graph::XNNGraphT& graph,
                              const std::string& constants = std::string(16, '\0')) {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(xnnpack_graph::XNNGraph::Pack(builder, &graph), "XN01");
  const auto graph_size = static_cast<std::uint32_t>(builder.GetSize());
  const std::uint32_t start = 32;
  const std::uint32_t begin = start + graph_size;
  const std::uint64_t constants_size = constants.size();
  std::string payload(start, '\0');
  std::memcpy(payload.data() + 4, "XH00", 4);
  std::memcpy(payload.data() + 10, &start, 4);
  std::memcpy(payload.data() + 14, &graph_size, 4);
  std::memcpy(payload.data() + 18, &begin, 4);
  std::memcpy(payload.data() + 22, &constants_size, 8);
  return payload + finished(builder) + constants;
}

}  // namespace etstream::made_xnnpack
