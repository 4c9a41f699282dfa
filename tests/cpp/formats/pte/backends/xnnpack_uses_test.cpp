// SPDX-License-Identifier: BSD-3-Clause
//
// A payload for XNNPACK whose nodes read constants by key, quantized and not.
#include "formats/pte/backends/backend_payload.h"

#include <doctest/doctest.h>

#include "etstream/program.h"
#include "files/origins/made_program.h"
#include "formats/pte/backends/made_xnnpack_payload.h"
#include "test_sources.h"

namespace etstream::xnnpack_uses_test {
namespace {

using namespace made_xnnpack;   // NOLINT: graphs and their parts are what this file is about
using namespace xnnpack_graph;  // NOLINT

/// Returns a line for each constant: "KEY: USE, LAYOUT", with "in nibbles" for elements of four bits.
std::string uses(const XNNGraphT& graph) {
  const std::string payload = payload_of(graph);
  const auto found = read_xnnpack_uses(source_of(payload), "p");
  REQUIRE_MESSAGE(found, found.error().message);
  std::string out;
  for (const PayloadConstant& each : found->constants) {
    CHECK(payload.substr(each.position, each.key.size()) == each.key);
    out += each.key + ": " + (each.use.empty() ? "unread" : each.use) + ", " +
           (each.layout ? describe(*each.layout) : "of no layout") +
           (each.is_of_nibbles ? " in nibbles\n" : "\n");
  }
  return out;
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
  add_value(graph,
            tensor_of(6, XNNDatatype_xnn_datatype_fp32, {1, 1, 1, 1, 1, 2}, add_constant(graph, "six", 8)));
  add_value(graph, tensor_of(7, XNNDatatype_xnn_datatype_invalid, {8}, add_constant(graph, "of no type", 8)));
  add_linear(graph, 1, 2, 3);
  add_linear(graph, 4, 1, 3);
  graph.xnodes.push_back(std::make_unique<XNodeT>());  // which is of no kind
  CHECK(uses(graph) ==
        "filter: filter of XNNFullyConnected 0, float32 [3, 4]\n"
        "bias: bias of XNNFullyConnected 0, float16 [3]\n"
        "output: unread, float32 [9]\n"
        "short: filter of XNNFullyConnected 1, of no layout\n"
        "seven: unread, of no layout\n"
        "six: unread, float32 [1, 1, 1, 1, 1, 2]\n"
        "of no type: unread, of no layout\n");
}

TEST_CASE("a program's delegate uses the constants that have keys") {
  XNNGraphT graph = empty_graph();
  add_value(graph, tensor_of(0, XNNDatatype_xnn_datatype_fp32, {3}, add_inner_constant(graph, 0, 12)));
  add_value(graph, tensor_of(1, XNNDatatype_xnn_datatype_fp32, {3}, add_constant(graph, "filter", 12)));
  add_value(graph, tensor_of(2, XNNDatatype_xnn_datatype_fp32, {3}, add_inner_constant(graph, 12, 12)));
  add_value(graph, tensor_of(3, XNNDatatype_xnn_datatype_fp32, {3}, add_constant(graph, "bias", 12)));
  add_linear(graph, 1, 3, 0);
  add_linear(graph, 1, UINT32_MAX, 0);
  made::Program program;
  const std::string payload = payload_of(graph, std::string(24, 'c'));
  const std::string damaged(40, 'd');
  program.delegates = {{"XnnpackBackend", payload}, {"XnnpackBackend", payload}, {"XnnpackBackend", damaged}};
  const auto opened = ProgramFile::open(file_of(made::file(program)));
  REQUIRE(opened);
  const auto found = read_named_data_uses(*opened);
  REQUIRE_MESSAGE(found, found.error().message);
  const DelegateUses& delegate = found->at(0);
  REQUIRE(delegate.uses.size() == 2);
  CHECK(delegate.uses.at(0).key == "filter");
  CHECK(delegate.uses.at(1).key == "bias");
  std::string without_keys = payload;
  for (const std::string key : {"filter", "bias"}) without_keys.erase(without_keys.find(key), key.size());
  CHECK(text_of(delegate.without_keys) == without_keys);
  // Equal data is read once, and damaged data has no uses.
  REQUIRE(found->size() == 2);
  CHECK(found->at(1).uses.empty());
  CHECK(text_of(found->at(1).without_keys) == damaged);
  const auto payloads = read_delegate_payloads(*opened).value();
  REQUIRE(payloads.size() == 2);
  CHECK(payloads[0].format == "a graph (XH00)");
  CHECK(payloads[0].keys == 2);
  CHECK(payloads[1].format.empty());
  const DataRequests requests = read_data_requests(opened->model()).value();
  CHECK(requests.delegates.size() == 2);
  CHECK(requests.errors.size() == 1);
  CHECK(requests.others.size() == 1);
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
  add_scaled(graph, whole, PerTensorQuantT());  // whose scale, 0, is not in the graph
  add_constant(graph, "nothing's", 12);
  // Values without a scale in the graph have none here.
  graph.xvalues.push_back(std::make_unique<XValueT>());
  graph.xvalues.back()->xvalue_union.Set(XNNQuantizedTensorValueT());  // without a tensor
  for (const std::uint32_t constant : {0U, add_constant(graph, "by token", 12)}) {
    const auto tensor = tensor_of(5, XNNDatatype_xnn_datatype_qint8, {3, 4}, constant);
    add_scaled(graph, tensor, PerTensorQuantT());
    add_scaled(graph, tensor, PerTokenDynamicQuantT());
    graph.xvalues.back()->xvalue_union.AsXNNQuantizedTensorValue()->quant_params.Reset();
    add_scaled(graph, tensor, PerTokenDynamicQuantT());
  }
  for (const std::uint32_t id : {1U, 2U, 3U, 4U}) add_linear(graph, id, 9, 9);
  CHECK(uses(graph) ==
        "channel: filter of XNNFullyConnected 0, int8 [3, 4]\n"
        "channel's: scales of filter of XNNFullyConnected 0, float32 [3]\n"
        "nibbles: filter of XNNFullyConnected 1, uint8 [6] in nibbles\n"
        "nibbles': scales of filter of XNNFullyConnected 1, float32 [3]\n"
        "group: filter of XNNFullyConnected 2, uint8 [6] in nibbles\n"
        "group's: scales of filter of XNNFullyConnected 2, bfloat16 [6]\n"
        "whole: filter of XNNFullyConnected 3, int8 [3, 4]\n"
        "nothing's: unread, of no layout\n"
        "by token: unread, int8 [3, 4]\n");
}

TEST_CASE("scales may lie in the graph, and constants in the payload") {
  XNNGraphT graph = empty_graph();
  const std::string constants = "ABCDEFGHIJKLMNOP";
  PerTensorQuantT one;
  one.scale = 0.5F;
  add_scaled(
      graph,
      tensor_of(1, XNNDatatype_xnn_datatype_qint8, {1, 1, 1, 1, 2, 2}, add_inner_constant(graph, 4, 4)), one);
  PerChannelQuantT two;
  two.scale = {0.25F, 0.125F};
  add_scaled(graph, tensor_of(2, XNNDatatype_xnn_datatype_qcint8, {2, 4}, add_inner_constant(graph, 8, 8)),
             two);
  // A range that is not in the payload is no constant.
  add_value(graph, tensor_of(3, XNNDatatype_xnn_datatype_fp32, {2}, add_inner_constant(graph, 12, 8)));
  add_linear(graph, 1, 9, 9);
  add_linear(graph, 2, 3, 9);
  const std::string payload = payload_of(graph, constants);
  const auto found = read_xnnpack_uses(source_of(payload), "p");
  REQUIRE_MESSAGE(found, found.error().message);
  std::string out;
  for (const PayloadConstant& each : found->constants) {
    CHECK(each.key.empty());
    out += each.use + ", " + describe(*each.layout) + "\n";
  }
  CHECK(out ==
        "filter of XNNFullyConnected 0, int8 [1, 1, 1, 1, 2, 2]\n"
        "filter of XNNFullyConnected 1, int8 [2, 4]\n"
        "scales of filter of XNNFullyConnected 0, float32 [1]\n"
        "scales of filter of XNNFullyConnected 1, float32 [2]\n");
  const auto bytes = [&](std::size_t i) {
    return payload.substr(static_cast<std::size_t>(found->constants[i].position),
                          static_cast<std::size_t>(found->constants[i].size));
  };
  CHECK(bytes(0) == "EFGH");
  CHECK(bytes(1) == "IJKLMNOP");
  CHECK(get_at<float>(bytes(2), 0) == 0.5F);
  CHECK(get_at<float>(bytes(3), 0) == 0.25F);
  CHECK(get_at<float>(bytes(3), 4) == 0.125F);
  CHECK(found->constants[0].scales == 2);
  CHECK(found->constants[1].scales == 3);
  CHECK_FALSE(found->constants[0].integers->has_channels);
  CHECK(found->constants[3].integers->has_channels);
  CHECK(found->constants[3].integers->sizes == std::vector<std::uint32_t>{2, 4});
}

TEST_CASE("a bias belongs to the filter of its node, with the scale of the node's input") {
  XNNGraphT graph = empty_graph();
  PerTensorQuantT scaled;
  scaled.scale = 0.75F;
  add_scaled(graph, tensor_of(0, XNNDatatype_xnn_datatype_qint8, {1, 4}, 0), scaled);
  add_value(graph, tensor_of(1, XNNDatatype_xnn_datatype_fp32, {1, 4}, 0));
  PerChannelGroupQuantT groups;
  groups.group_size = 2;
  groups.channel_dim = 1;
  groups.scale_buffer_idx = add_constant(graph, "scales", 12);
  add_scaled(graph, tensor_of(2, XNNDatatype_xnn_datatype_qbint4, {3, 4}, add_constant(graph, "filter", 6)),
             groups);
  add_value(graph, tensor_of(3, XNNDatatype_xnn_datatype_qint32, {3}, add_constant(graph, "bias", 12)));
  add_value(graph, tensor_of(4, XNNDatatype_xnn_datatype_fp32, {3}, add_constant(graph, "other", 12)));
  add_linear(graph, 2, 3, 9, 0);
  add_linear(graph, 2, 4, 9, 1);
  const auto found = read_xnnpack_uses(source_of(payload_of(graph)), "p");
  REQUIRE_MESSAGE(found, found.error().message);
  const auto& constants = found->constants;
  REQUIRE(constants.size() == 5);
  CHECK(constants[4].is_calibrated);
  CHECK(constants[4].use == "scale of value 0");
  CHECK(constants[1].scales == 0);
  CHECK(constants[1].integers->group == 2);
  CHECK(constants[1].integers->channel_dim == 1);
  CHECK(constants[1].bias_of.empty());
  CHECK((constants[2].bias_of == std::vector<BiasUse>{{1, 0.75F}}));
  CHECK((constants[3].bias_of == std::vector<BiasUse>{{1}}));
}

}  // namespace
}  // namespace etstream::xnnpack_uses_test
