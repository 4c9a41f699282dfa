// SPDX-License-Identifier: BSD-3-Clause
//
// A payload for XNNPACK of one linear layer, with one thing wrong in it: verify_xnnpack() finds it.
#include <doctest/doctest.h>

#include <functional>

#include "core/base/text.h"
#include "file_bytes.h"
#include "formats/pte/backends/backend_payload.h"
#include "formats/pte/backends/made_xnnpack_payload.h"
#include "test_errors.h"
#include "test_sources.h"
#include "xnnpack_graph_generated.h"

namespace etstream::xnnpack_verify_test {
namespace {

using namespace xnnpack_graph;  // NOLINT: the generated types are what this file is about

constexpr std::uint32_t kNoId = 0xffffffff;
constexpr std::size_t kConstants = 64;  // bytes behind the graph

void add_tensor(XNNGraphT& graph, XNNTensorValueT tensor) {
  graph.xvalues.push_back(std::make_unique<XValueT>());
  graph.xvalues.back()->xvalue_union.Set(std::move(tensor));
}

XNNTensorValueT tensor_of(std::uint32_t id, std::vector<std::uint32_t> dims) {
  XNNTensorValueT out;
  out.datatype = XNNDatatype_xnn_datatype_fp32;
  out.dims = std::move(dims);
  out.external_id = kNoId;
  out.id_out = id;
  return out;
}

void add_constant(XNNGraphT& graph, std::uint64_t offset, std::uint64_t size) {
  graph.constant_data.push_back(std::make_unique<ConstantDataOffsetT>());
  graph.constant_data.back()->offset = offset;
  graph.constant_data.back()->size = size;
}

template <class Held>
void set_node(XNNGraphT& graph, XNodeUnion type, Held held) {
  XNodeUnionUnion& node = graph.xnodes[0]->xnode_union;
  node.Reset();
  node.type = type;
  node.value = new Held(std::move(held));
}

/// Makes a graph with tensors 0 and 3 from outside, 1 the filter, 2 the bias.
XNNGraphT sound_graph() {
  XNNGraphT graph;
  graph.num_externs = 2;
  add_constant(graph, 0, 0);
  add_constant(graph, 0, 48);
  add_constant(graph, 48, 12);
  XNNTensorValueT input = tensor_of(0, {2, 4});
  input.external_id = 0;
  input.flags = 1;
  add_tensor(graph, input);
  XNNTensorValueT filter = tensor_of(1, {3, 4});
  filter.constant_buffer_idx = 1;
  add_tensor(graph, filter);
  XNNTensorValueT bias = tensor_of(2, {3});
  bias.constant_buffer_idx = 2;
  add_tensor(graph, bias);
  XNNTensorValueT output = tensor_of(3, {2, 3});
  output.external_id = 1;
  output.flags = 2;
  add_tensor(graph, output);
  XNNFullyConnectedT linear;
  linear.filter_id = 1;
  linear.bias_id = 2;
  linear.output_id = 3;
  made_xnnpack::add_node(graph, XNodeUnion_XNNFullyConnected, linear);
  return graph;
}

std::string payload_of(const XNNGraphT& graph) {
  return made_xnnpack::payload_of(graph, std::string(kConstants, '\1'));
}

using Spoil = std::function<void(XNNGraphT&)>;

Findings findings_after(const Spoil& spoil, const NamedDataSizes& named_data = {}) {
  XNNGraphT graph = sound_graph();
  spoil(graph);
  Findings findings;
  REQUIRE(verify_xnnpack(source_of(payload_of(graph)), "p", named_data, findings));
  return findings;
}

void check_found(const std::string& expected, const Spoil& spoil) {
  CAPTURE(expected);
  const Findings findings = findings_after(spoil);
  CAPTURE(lines_of(findings.errors));
  REQUIRE(findings.errors.size() == 1);
  CHECK(findings.errors[0].message.starts_with("p: offset "));
  CHECK(findings.errors[0].message.find(expected) != std::string::npos);
}

XNNTensorValueT& tensor(XNNGraphT& graph, std::size_t number) {
  return *graph.xvalues[number]->xvalue_union.AsXNNTensorValue();
}

XNNFullyConnectedT& linear(XNNGraphT& graph) { return *graph.xnodes[0]->xnode_union.AsXNNFullyConnected(); }

TEST_CASE("a sound payload has nothing to find, and says what calls bring") {
  Findings findings;
  const auto arguments = verify_xnnpack(source_of(payload_of(sound_graph())), "p", {}, findings);
  REQUIRE(arguments);
  CHECK(lines_of(findings.errors).empty());
  REQUIRE(arguments->size() == 2);
  CHECK((*arguments)[1].number == 1);
  CHECK((*arguments)[1].width == 4);
}

TEST_CASE("constants of a payload without a header are not looked for behind its graph") {
  XNNGraphT graph = sound_graph();
  graph.xvalues[2]->xvalue_union.AsXNNTensorValue()->constant_buffer_idx = 9;
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(XNNGraph::Pack(builder, &graph), "XN00");
  Findings findings;
  REQUIRE(verify_xnnpack(source_of(finished(builder)), "p", {}, findings));
  CHECK(lines_of(findings.errors).empty());
}

TEST_CASE("named data of the program that is shorter than the constant that asks for it is found") {
  const Spoil by_key = [](XNNGraphT& graph) { graph.constant_data[1]->named_key = "w"; };
  const Findings findings = findings_after(by_key, {{"w", 47}});
  REQUIRE(findings.errors.size() == 1);
  CHECK(findings.errors[0].message.ends_with("expected named data 'w' of 48 bytes, found 47"));
  CHECK(findings_after(by_key, {{"w", 48}}).ok());
  CHECK(findings_after(by_key, {{"v", 1}}).ok());  // of a file, which is checked with it
}

TEST_CASE("a tensor whose constant is not all there is found") {
  check_found("expected a tensor of at most the 48 bytes of constant 1, found 60", [](XNNGraphT& graph) {
    tensor(graph, 1).dims = {3, 5};
  });
  check_found("expected a constant from 1 to below 3, found 3",
              [](XNNGraphT& graph) { tensor(graph, 2).constant_buffer_idx = 3; });
  check_found("expected a constant inside the 64 bytes behind the graph, found 12 bytes at 53",
              [](XNNGraphT& graph) { graph.constant_data[2]->offset = 53; });
  check_found("a datatype from 1 to below 15, found 0", [](XNNGraphT& graph) {
    tensor(graph, 1).datatype = XNNDatatype_xnn_datatype_invalid;
    tensor(graph, 1).constant_buffer_idx = 9;  // which is not looked up
  });
}

TEST_CASE("a constant has as many bits for an element as the datatype says") {
  constexpr std::uint32_t kBits[] = {32, 16, 8, 8, 32, 8, 32, 4, 8, 4, 0, 32, 0, 16};
  const auto of_type = [](std::size_t datatype, const std::vector<std::uint32_t>& dims) {
    return [=](XNNGraphT& graph) {
      XNNTensorValueT constant = tensor_of(4, dims);
      constant.datatype = static_cast<XNNDatatype>(datatype);
      constant.constant_buffer_idx = 3;
      add_tensor(graph, constant);
      add_constant(graph, 0, 0);
    };
  };
  const std::string expected = "expected a tensor of at most the 0 bytes of constant 3, found ";
  for (std::size_t i = 0; i < std::size(kBits); ++i) {
    CAPTURE(i);
    if (kBits[i] == 0) {
      CHECK(findings_after(of_type(i + 1, {64})).ok());
    } else {
      check_found(text("{}{}", expected, 8 * kBits[i]), of_type(i + 1, {64}));
    }
  }
  check_found(expected + "6", of_type(XNNDatatype_xnn_datatype_qcint4, {3, 3}));
  check_found(expected + "1", of_type(XNNDatatype_xnn_datatype_qint8, {}));
}

TEST_CASE("a tensor from outside that no argument can be is found") {
  check_found("expected an external_id below 2, found 2", [](XNNGraphT& graph) {
    tensor(graph, 1).flags = 1;
    tensor(graph, 1).external_id = 2;
  });
  check_found("expected one tensor that is argument 0, or both read or written alike, found another",
              [](XNNGraphT& graph) { tensor(graph, 3).external_id = 0; });
  check_found("expected flags of a tensor with an external_id, found 0",
              [](XNNGraphT& graph) { tensor(graph, 3).flags = 0; });
  check_found("expected flags of 3 at most, found 8", [](XNNGraphT& graph) { tensor(graph, 1).flags = 8; });
}

TEST_CASE("a node of a tensor that there is not, or of a bias that is too short, is found") {
  check_found("expected bias_id of a tensor, found 9", [](XNNGraphT& graph) { linear(graph).bias_id = 9; });
  check_found("expected an input_id of a tensor that a node before it, a constant or a call gives, found 3",
              [](XNNGraphT& graph) {
                XNNStaticTransposeT node;
                node.num_dims = 2;
                node.perm = {1, 0};
                node.input_id = 3;
                node.output_id = 3;
                set_node(graph, XNodeUnion_XNNStaticTranspose, node);
              });
  check_found("expected a node that gives each tensor that is given to a call, found none for 3",
              [](XNNGraphT& graph) {
                add_tensor(graph, tensor_of(4, {2, 3}));
                linear(graph).output_id = 4;
              });
  check_found("expected output_id of a tensor that can be written, found 1", [](XNNGraphT& graph) {
    graph.xnodes.push_back(std::make_unique<XNodeT>(*graph.xnodes[0]));
    linear(graph).output_id = 1;
  });
  check_found("expected a bias of 3 elements, found 2",
              [](XNNGraphT& graph) { tensor(graph, 2).dims = {2}; });
  check_found("expected a bias of 3 elements, found 0", [](XNNGraphT& graph) {
    graph.num_externs = 3;
    XNNTensorValueT& bias = tensor(graph, 2);
    bias.dims = {UINT32_MAX, UINT32_MAX, UINT32_MAX};
    bias.constant_buffer_idx = 0;
    bias.flags = 1;
    bias.external_id = 2;
  });
  check_found("expected a bias of 4 elements, found 3", [](XNNGraphT& graph) { linear(graph).flags = 1; });
  check_found("expected a filter of 2 dimensions, found 1",
              [](XNNGraphT& graph) { linear(graph).filter_id = 2; });
  check_found("expected a filter of 2 dimensions, found none",
              [](XNNGraphT& graph) { linear(graph).filter_id = kNoId; });
  check_found("expected a node, found none",
              [](XNNGraphT& graph) { graph.xnodes.push_back(std::make_unique<XNodeT>()); });
}

TEST_CASE("scales that are not all there are found") {
  const auto quantized = [](XNNGraphT& graph, std::size_t scales, std::int32_t channel) {
    XNNQuantizedTensorValueT value;
    value.tensor_value = std::make_unique<XNNTensorValueT>(tensor(graph, 1));
    value.tensor_value->datatype = XNNDatatype_xnn_datatype_qcint8;
    PerChannelQuantT params;
    params.scale.assign(scales, 0.5F);
    params.channel_dim = channel;
    value.quant_params.Set(params);
    graph.xvalues[1]->xvalue_union.Set(std::move(value));
  };
  CHECK(findings_after([&](XNNGraphT& graph) { quantized(graph, 3, 0); }).ok());
  check_found("expected 3 scales, found 2", [&](XNNGraphT& graph) { quantized(graph, 2, 0); });
  check_found("expected 3 scales, found none", [&](XNNGraphT& graph) { quantized(graph, 0, 0); });
  check_found("expected a channel_dim from 0 to below 2, found 2",
              [&](XNNGraphT& graph) { quantized(graph, 3, 2); });
}

/// Adds tensor 4, whose params these are.
template <class Params>
void add_quantized(XNNGraphT& graph, XNNDatatype datatype, std::vector<std::uint32_t> dims, Params params) {
  XNNTensorValueT tensor = tensor_of(4, std::move(dims));
  tensor.datatype = datatype;
  made_xnnpack::add_scaled(graph, tensor, std::move(params));
}

TEST_CASE("scales by channel in a constant have 4 bytes each") {
  const auto quantized = [](std::uint64_t size) {
    return [=](XNNGraphT& graph) {
      PerChannelQuantT params;
      params.channel_dim = 1;
      params.scale_buffer_idx = 3;
      add_constant(graph, 0, size);
      add_quantized(graph, XNNDatatype_xnn_datatype_qcint8, {3, 4}, params);
    };
  };
  CHECK(findings_after(quantized(16)).ok());
  check_found("expected a tensor of at most the 15 bytes of constant 3, found 16", quantized(15));
}

TEST_CASE("scales by group have 2 bytes each, one for so many elements of the first two dimensions") {
  const auto grouped = [](std::uint64_t size, const std::vector<std::uint32_t>& dims, std::int32_t group,
                          XNNDatatype datatype = XNNDatatype_xnn_datatype_qbint4, std::int32_t channel = 0) {
    return [=](XNNGraphT& graph) {
      PerChannelGroupQuantT params;
      params.channel_dim = channel;
      params.group_size = group;
      params.scale_buffer_idx = 3;
      add_constant(graph, 0, size);
      add_quantized(graph, datatype, dims, params);
    };
  };
  CHECK(findings_after(grouped(12, {3, 4}, 2)).ok());
  check_found("expected a tensor of at most the 11 bytes of constant 3, found 12", grouped(11, {3, 4}, 2));
  CHECK(findings_after(grouped(12, {3, 4, 5}, 2)).ok());
  check_found("expected a tensor of at most the 11 bytes of constant 3, found 12", grouped(11, {3, 4, 5}, 2));
  CHECK(findings_after(grouped(24, {3, 4}, 1)).ok());
  check_found("expected a tensor of at most the 23 bytes of constant 3, found 24", grouped(23, {3, 4}, 1));
  CHECK(findings_after(grouped(24, {3, 4}, 1, XNNDatatype_xnn_datatype_qcint4, 1)).ok());
  check_found("expected a tensor of at most the 64 bytes of constant 3, found more",
              grouped(64, {UINT32_MAX, UINT32_MAX}, 1));

  const std::string expected = "expected 4-bit rows in groups of at least 1, found groups of ";
  check_found(expected + "0", grouped(64, {3, 4}, 0));
  check_found(expected + "-1", grouped(64, {3, 4}, -1));
  check_found(expected + "2", grouped(64, {4}, 2));
  check_found(expected + "2", grouped(64, {3, 4}, 2, XNNDatatype_xnn_datatype_qcint8));
  check_found("expected a channel_dim from 0 to below 2, found 2",
              grouped(64, {3, 4}, 2, XNNDatatype_xnn_datatype_qbint4, 2));
}

TEST_CASE("scales by group may be in the graph") {
  const auto grouped = [](std::size_t scales) {
    return [=](XNNGraphT& graph) {
      PerChannelGroupQuantT params;
      params.group_size = 2;
      params.scale.assign(scales, 0.5F);
      add_quantized(graph, XNNDatatype_xnn_datatype_qbint4, {3, 4}, params);
    };
  };
  CHECK(findings_after(grouped(6)).ok());
  check_found("expected 6 scales, found 5", grouped(5));
}

TEST_CASE("a scale for a whole tensor has nothing to find") {
  PerTensorQuantT params;
  params.zero_point = 1;
  params.scale = 0.5F;
  CHECK(findings_after([&](XNNGraphT& graph) {
          add_quantized(graph, XNNDatatype_xnn_datatype_qint8, {3, 4}, params);
        }).ok());
}

TEST_CASE("a quantized tensor without its parts is found") {
  check_found("expected quant_params, found none", [](XNNGraphT& graph) {
    add_quantized(graph, XNNDatatype_xnn_datatype_qint8, {1}, PerTensorQuantT());
    graph.xvalues.back()->xvalue_union.AsXNNQuantizedTensorValue()->quant_params.Reset();
  });
  check_found("expected a tensor_value, found none", [](XNNGraphT& graph) {
    add_quantized(graph, XNNDatatype_xnn_datatype_qint8, {1}, PerTensorQuantT());
    graph.xvalues.back()->xvalue_union.AsXNNQuantizedTensorValue()->tensor_value.reset();
  });
}

TEST_CASE("a graph of too many arguments, or a tensor of too many dimensions, is found") {
  CHECK(findings_after([](XNNGraphT& graph) { graph.num_externs = 4096; }).ok());
  check_found("expected at most 4096 num_externs, found 4097",
              [](XNNGraphT& graph) { graph.num_externs = 4097; });
  const auto deep = [](std::size_t dimensions) {
    return
        [=](XNNGraphT& graph) { add_tensor(graph, tensor_of(4, std::vector<std::uint32_t>(dimensions, 1))); };
  };
  CHECK(findings_after(deep(6)).ok());
  check_found("expected at most 6 dims, found 7", deep(7));
}

TEST_CASE("a payload that can't be opened is one error, and one that can't be read is none") {
  std::string payload = payload_of(sound_graph());
  payload.resize(40);
  Findings findings;
  const auto arguments = verify_xnnpack(source_of(payload), "p", {}, findings);
  REQUIRE(arguments);
  CHECK(arguments->empty());
  REQUIRE(findings.errors.size() == 1);
  CHECK(findings.errors[0].message.starts_with("p: offset 10: expected a graph inside 40 bytes, found "));
  findings = {};
  CHECK(code_of(verify_xnnpack(failing(1000, 0), "p", {}, findings)) == "kIo");
  CHECK(findings.ok());
}

TEST_CASE("a list that is shorter than its node's dimensions is found") {
  const auto transposed = [](std::uint32_t dimensions, const std::vector<std::uint32_t>& order = {1, 0}) {
    return [=](XNNGraphT& graph) {
      XNNStaticTransposeT node;
      node.num_dims = dimensions;
      node.perm = order;
      node.output_id = 3;
      set_node(graph, XNodeUnion_XNNStaticTranspose, node);
    };
  };
  CHECK(findings_after(transposed(2)).ok());
  check_found("expected perm of 3 dimensions or more, at most 6, found 2", transposed(3));
  check_found("expected perm of 0 dimensions or more, at most 6, found none", transposed(0, {}));
  CHECK(findings_after(transposed(6, {5, 4, 3, 2, 1, 0})).ok());
  check_found("expected perm of 7 dimensions or more, at most 6, found 7",
              transposed(7, {6, 5, 4, 3, 2, 1, 0}));
}

TEST_CASE("a list that is shorter than the dimensions of its node's input is found") {
  const auto padded = [](const std::vector<std::uint32_t>& before, std::uint32_t input = 0) {
    return [=](XNNGraphT& graph) {
      XNNStaticConstantPadT node;
      node.pre_paddings = before;
      node.post_paddings = {0, 0};
      node.input_id = input;
      node.output_id = 3;
      set_node(graph, XNodeUnion_XNNStaticConstantPad, node);
    };
  };
  CHECK(findings_after(padded({1, 1})).ok());
  CHECK(findings_after(padded({1}, 2)).ok());  // tensor 2 has one dimension
  check_found("expected pre_paddings of 2 dimensions or more, at most 6, found 1", padded({1}));
  check_found("expected input_id of a tensor, found 9", padded({1}, 9));
}

TEST_CASE("a convolution with more taps than its filter has, or more channels than its bias, is found") {
  const auto convolved = [](std::uint32_t height, std::uint32_t filter = 1) {
    return [=](XNNGraphT& graph) {
      _XNNNodeConvT node;
      node.kernel_height = height;
      node.kernel_width = 1;
      node.groups = 1;
      node.group_input_channels = 2;
      node.group_output_channels = 3;
      node.filter_id = filter;
      node.bias_id = 2;
      node.output_id = 3;
      set_node(graph, XNodeUnion_XNNConv2d, node);
    };
  };
  CHECK(findings_after(convolved(2)).ok());
  check_found("expected a filter of 24 elements, more than none, found 12", convolved(4));
  check_found("expected a filter of 0 elements, more than none, found 12", convolved(0));
  check_found("expected a filter of 12 elements, more than none, found 0", convolved(2, kNoId));
  check_found("expected a filter of 0 elements, more than none, found 12", [&](XNNGraphT& graph) {
    convolved(UINT32_MAX)(graph);
    graph.xnodes[0]->xnode_union.AsXNNConv2d()->kernel_width = UINT32_MAX;
  });
  check_found("expected a bias of 3 elements, found 2", [&](XNNGraphT& graph) {
    convolved(2)(graph);
    tensor(graph, 2).dims = {2};
  });
}

}  // namespace
}  // namespace etstream::xnnpack_verify_test
