// SPDX-License-Identifier: BSD-3-Clause
//
// A payload for XNNPACK whose nodes read constants by key, quantized and not.
#include "formats/pte/backends/xnnpack_uses.h"

#include <doctest/doctest.h>

#include <cstring>

#include "file_bytes.h"
#include "test_sources.h"
#include "xnnpack_graph_generated.h"

namespace etstream::xnnpack_uses_test {
namespace {

using namespace xnnpack_graph;  // NOLINT: the generated types are what this file is about

/// Adds a constant, and returns its number.
std::uint32_t add_constant(XNNGraphT& graph, const std::string& key, std::uint64_t size) {
  graph.constant_data.push_back(std::make_unique<ConstantDataOffsetT>());
  graph.constant_data.back()->named_key = key;
  graph.constant_data.back()->size = size;
  return static_cast<std::uint32_t>(graph.constant_data.size()) - 1;
}

XNNTensorValueT tensor_of(std::uint32_t id, XNNDatatype datatype, std::vector<std::uint32_t> dims,
                          std::uint32_t constant) {
  XNNTensorValueT out;
  out.id_out = id;
  out.datatype = datatype;
  out.dims = std::move(dims);
  out.constant_buffer_idx = constant;
  return out;
}

void add_value(XNNGraphT& graph, XNNTensorValueT tensor) {
  graph.xvalues.push_back(std::make_unique<XValueT>());
  graph.xvalues.back()->xvalue_union.Set(std::move(tensor));
}

template <class Params>
void add_quantized(XNNGraphT& graph, const XNNTensorValueT& tensor, std::uint32_t scales) {
  XNNQuantizedTensorValueT quantized;
  quantized.tensor_value = std::make_unique<XNNTensorValueT>(tensor);
  Params params;
  if constexpr (requires { params.scale_buffer_idx; }) params.scale_buffer_idx = scales;
  quantized.quant_params.Set(std::move(params));
  graph.xvalues.push_back(std::make_unique<XValueT>());
  graph.xvalues.back()->xvalue_union.Set(std::move(quantized));
}

void add_linear(XNNGraphT& graph, std::uint32_t filter, std::uint32_t bias, std::uint32_t output) {
  XNNFullyConnectedT linear;
  linear.filter_id = filter;
  linear.bias_id = bias;
  linear.output_id = output;
  graph.xnodes.push_back(std::make_unique<XNodeT>());
  graph.xnodes.back()->xnode_union.type = XNodeUnion_XNNFullyConnected;
  graph.xnodes.back()->xnode_union.value = new XNNFullyConnectedT(std::move(linear));
}

std::string payload_of(const XNNGraphT& graph) {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(XNNGraph::Pack(builder, &graph), "XN01");
  const auto graph_size = static_cast<std::uint32_t>(builder.GetSize());
  const std::uint32_t start = 32;
  const std::uint32_t constants = start + graph_size;
  std::string payload(start, '\0');
  std::memcpy(payload.data() + 4, "XH00", 4);
  std::memcpy(payload.data() + 10, &start, 4);
  std::memcpy(payload.data() + 14, &graph_size, 4);
  std::memcpy(payload.data() + 18, &constants, 4);
  return payload + finished(builder) + std::string(16, '\0');
}

/// Returns a line for each constant: "KEY: USE, LAYOUT", with "in nibbles" for elements of four bits.
std::string uses(const XNNGraphT& graph) {
  const std::string payload = payload_of(graph);
  const auto found = read_xnnpack_uses(source_of(payload), "p");
  REQUIRE_MESSAGE(found, found.error().message);
  std::string out;
  for (const PayloadConstant& each : found->constants) {
    CHECK(payload.substr(each.key_position, each.key.size()) == each.key);
    out += each.key + ": " + (each.use.empty() ? "unread" : each.use) + ", " +
           (each.layout ? describe(*each.layout) : "of no layout") +
           (each.is_of_nibbles ? " in nibbles\n" : "\n");
  }
  return out;
}

/// Returns a line for each node that packs constants: "NODE: FILTER, BIAS".
std::string packings(const XNNGraphT& graph) {
  const auto found = read_xnnpack_uses(source_of(payload_of(graph)), "p");
  REQUIRE_MESSAGE(found, found.error().message);
  std::string out;
  for (const XnnpackPacking& each : found->packings) {
    out += each.node + ": " + each.filter + (each.bias.empty() ? "" : ", " + each.bias) + "\n";
  }
  return out;
}

XNNGraphT empty_graph() {
  XNNGraphT graph;
  add_constant(graph, "placeholder", 0);
  return graph;
}

TEST_CASE("constants are told by the node and the role that read them first, with their layout") {
  XNNGraphT graph = empty_graph();
  add_value(graph, tensor_of(0, XNNDatatype_xnn_datatype_fp32, {2, 4}, 0));
  add_value(graph, tensor_of(1, XNNDatatype_xnn_datatype_fp32, {3, 4}, add_constant(graph, "filter", 48)));
  add_value(graph, tensor_of(2, XNNDatatype_xnn_datatype_fp16, {3}, add_constant(graph, "bias", 6)));
  add_value(graph, tensor_of(3, XNNDatatype_xnn_datatype_fp32, {9}, add_constant(graph, "output", 36)));
  add_value(graph, tensor_of(4, XNNDatatype_xnn_datatype_fp32, {3}, add_constant(graph, "short", 8)));
  add_value(graph, tensor_of(5, XNNDatatype_xnn_datatype_fp32, {1, 1, 1, 1, 1, 1, 2},
                             add_constant(graph, "seven", 8)));
  add_linear(graph, 1, 2, 3);
  add_linear(graph, 4, 1, 3);
  CHECK(uses(graph) ==
        "filter: filter of XNNFullyConnected 0, float32 [3, 4]\n"
        "bias: bias of XNNFullyConnected 0, float16 [3]\n"
        "output: unread, float32 [9]\n"
        "short: filter of XNNFullyConnected 1, of no layout\n"
        "seven: unread, of no layout\n");
}

TEST_CASE("a node packs a filter that has a key, with the bias if that has one") {
  XNNGraphT graph = empty_graph();
  const auto add_float = [&](std::uint32_t id, std::uint32_t constant) {
    add_value(graph, tensor_of(id, XNNDatatype_xnn_datatype_fp32, {3}, constant));
  };
  add_float(0, 0);
  add_float(1, add_constant(graph, "filter", 12));
  add_float(2, add_constant(graph, "bias", 12));
  const auto quantized =
      tensor_of(3, XNNDatatype_xnn_datatype_qcint8, {3}, add_constant(graph, "quantized", 3));
  add_quantized<PerChannelQuantT>(graph, quantized, add_constant(graph, "scales", 12));
  const std::uint32_t unnamed = add_constant(graph, "", 12);
  graph.constant_data.back()->named_key.clear();
  add_float(4, unnamed);
  add_linear(graph, 1, 2, 0);
  add_linear(graph, 1, UINT32_MAX, 0);
  add_linear(graph, 3, 4, 0);
  add_linear(graph, 4, 2, 0);
  add_linear(graph, 0, 2, 0);
  _XNNNodeConvT convolution;
  convolution.filter_id = 3;
  convolution.bias_id = 2;
  _XNNNode2x1T sum;
  sum.input1_id = 1;
  sum.input2_id = 2;
  graph.xnodes.push_back(std::make_unique<XNodeT>());
  graph.xnodes.back()->xnode_union.type = XNodeUnion_XNNAdd;
  graph.xnodes.back()->xnode_union.value = new _XNNNode2x1T(sum);
  graph.xnodes.push_back(std::make_unique<XNodeT>());
  graph.xnodes.back()->xnode_union.type = XNodeUnion_XNNDepthwiseConv2d;
  graph.xnodes.back()->xnode_union.value = new _XNNNodeConvT(convolution);
  CHECK(packings(graph) ==
        "XNNFullyConnected 0: filter, bias\n"
        "XNNFullyConnected 1: filter\n"
        "XNNFullyConnected 2: quantized\n"
        "XNNDepthwiseConv2d 6: quantized, bias\n");
}

TEST_CASE("quantized constants have scales, of another type by group, and those of four bits are bytes") {
  XNNGraphT graph = empty_graph();
  const auto filter = [&](std::uint32_t id, XNNDatatype datatype, const std::string& key,
                          std::uint64_t size) {
    return tensor_of(id, datatype, {3, 4}, add_constant(graph, key, size));
  };
  const auto by_channel = filter(1, XNNDatatype_xnn_datatype_qcint8, "channel", 12);
  add_quantized<PerChannelQuantT>(graph, by_channel, add_constant(graph, "channel's", 12));
  const auto nibbles = filter(2, XNNDatatype_xnn_datatype_qcint4, "nibbles", 6);
  add_quantized<PerChannelQuantT>(graph, nibbles, add_constant(graph, "nibbles'", 12));
  const auto by_group = filter(3, XNNDatatype_xnn_datatype_qbint4, "group", 6);
  add_quantized<PerChannelGroupQuantT>(graph, by_group, add_constant(graph, "group's", 12));
  const auto whole = filter(4, XNNDatatype_xnn_datatype_qint8, "whole", 12);
  add_quantized<PerTensorQuantT>(graph, whole, add_constant(graph, "whole's", 12));
  for (const std::uint32_t id : {1U, 2U, 3U, 4U}) add_linear(graph, id, 9, 9);
  CHECK(uses(graph) ==
        "channel: filter of XNNFullyConnected 0, int8 [3, 4]\n"
        "channel's: scales of filter of XNNFullyConnected 0, float32 [3]\n"
        "nibbles: filter of XNNFullyConnected 1, uint8 [6] in nibbles\n"
        "nibbles': scales of filter of XNNFullyConnected 1, float32 [3]\n"
        "group: filter of XNNFullyConnected 2, uint8 [6] in nibbles\n"
        "group's: scales of filter of XNNFullyConnected 2, bfloat16 [6]\n"
        "whole: filter of XNNFullyConnected 3, int8 [3, 4]\n"
        "whole's: unread, of no layout\n");
}

}  // namespace
}  // namespace etstream::xnnpack_uses_test
