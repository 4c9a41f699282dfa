// SPDX-License-Identifier: BSD-3-Clause
#include "files/origins/weight_payloads.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "files/origins/made_network.h"
#include "formats/pte/backends/made_vulkan_payload.h"
#include "test_errors.h"

namespace etstream::weight_payloads_test {
namespace {

using namespace made_xnnpack;   // NOLINT: graphs are part of what this file is about
using namespace xnnpack_graph;  // NOLINT
using made::Place;

std::vector<WeightPayload> read(const std::string& program, const std::string& data = "") {
  std::vector<TensorDataFile> files;
  if (!data.empty()) files.push_back(made::opened_data(data));
  std::vector<const TensorDataFile*> all;
  for (const TensorDataFile& file : files) all.push_back(&file);
  const auto payloads = read_weight_payloads(made::opened(program), all);
  REQUIRE_MESSAGE(payloads, full_message(payloads.error()));
  return *payloads;
}

/// Returns "LABEL (NAME): LAYOUT", a line for each.
std::string labels(const std::vector<WeightPayload>& payloads) {
  std::string out;
  for (const WeightPayload& each : payloads) {
    out += each.label + (each.name.empty() ? "" : " (" + each.name + ")") + ": " +
           (each.is_opaque ? "opaque"
            : each.layout  ? describe(*each.layout)
                           : "of no layout") +
           "\n";
  }
  return out;
}

std::string refused(const made::Program& program) {
  const auto payloads = read_weight_payloads(made::opened(made::file(program)), {});
  return std::string(error_of(payloads).c_str());
}

TEST_CASE("all payloads are read in order, with the names, places and layouts that they have") {
  const Checkpoint weights = made::checkpoint(1);
  const made::Program made = made::program_of(weights);
  const std::string program = made::file(made);
  const std::string data = made::data_of(weights);
  const std::vector<WeightPayload> payloads = read(program, data);
  const auto key = [&](std::size_t i) { return made.named_data.at(i).first; };
  const std::string delegate = " in method 'forward', delegate 0 (XnnpackBackend)";
  CHECK(exactly(labels(payloads)) ==
        exactly("constant value 1 of method 'forward' (constants/1): float32 [8, 4]\n"
                "initial state 'state' of method 'forward' (state): float32 [3]\n"
                "tensor 'outside' (outside): float32 [5]\n"
                "constant value 4 of method 'forward' (constants/2): int64 [3]\n"
                "filter of XNNFullyConnected 0" +
                delegate + " (" + key(0) +
                "): uint8 [64]\n"
                "scales of filter of XNNFullyConnected 0" +
                delegate + " (" + key(1) +
                "): bfloat16 [8]\n"
                "bias of XNNFullyConnected 0" +
                delegate + " (" + key(2) +
                "): float32 [4]\n"
                "filter of XNNFullyConnected 1" +
                delegate +
                ": int8 [2, 4]\n"
                "bias of XNNFullyConnected 1" +
                delegate +
                ": int32 [2]\n"
                "scale of value 0" +
                delegate +
                ": float32 [1]\n"
                "scales of filter of XNNFullyConnected 1" +
                delegate +
                ": float32 [1]\n"
                "scales of bias of XNNFullyConnected 1" +
                delegate + ": float32 [1]\n"));
  for (const WeightPayload& each : payloads) {
    CAPTURE(each.label);
    CHECK(each.file == "bad");
    const std::string& file = each.name == "outside" ? data : program;
    CHECK((file.substr(static_cast<std::size_t>(each.offset), static_cast<std::size_t>(each.data.size())) ==
           text_of(each.data)));
    // A key is where the program has it, and where the payload asks for it.
    const bool is_hashed = each.name.size() >= 64;
    CHECK(each.hashes.size() == (is_hashed ? 2 : 0));
    for (const ByteSource& place : each.hashes) {
      CHECK(text_of(place) == made::hash_of(text_of(each.data)));
    }
  }
  CHECK(payloads[4].is_of_nibbles);
  CHECK(payloads[4].scales == 5);
  CHECK(payloads[4].integers->group == 16);
  CHECK((payloads[6].bias_of == std::vector<BiasUse>{{4}}));
  CHECK(payloads[7].scales == 10);
  CHECK((payloads[8].bias_of == std::vector<BiasUse>{{7, made::kInputScale}}));
  CHECK(payloads[8].scales == 11);
  CHECK(payloads[9].is_calibrated);
}

TEST_CASE("data that several have is read once, and named data that nothing asks for comes last") {
  XNNGraphT graph = empty_graph();
  const std::uint32_t shared = add_constant(graph, "b", 8);
  add_value(graph, tensor_of(1, XNNDatatype_xnn_datatype_fp32, {2}, shared));
  add_linear(graph, 1, 9, 9);
  made::Program program;
  program.named_data = {{"c", made::floats(2, 1)}, {"b", made::floats(2, 2)}, {"a", made::floats(2, 3)}};
  const std::string payload = payload_of(graph);
  program.delegates = {{"XnnpackBackend", payload}, {"XnnpackBackend", payload}};
  CHECK(labels(read(made::file(program))) ==
        "filter of XNNFullyConnected 0 in method 'forward', delegate 0 (XnnpackBackend) (b): float32 [2]\n"
        "named data 'a' (a): of no layout\n"
        "named data 'c' (c): of no layout\n");
}

TEST_CASE("metadata is no payload, and keys that are no hashes stay") {
  made::Program program;
  const std::string bytes = made::floats(2, 1);
  const std::string hash = made::hash_of(bytes);
  std::string upper = hash;
  std::ranges::transform(upper, upper.begin(),
                         [](char c) { return c >= 'a' && c <= 'f' ? static_cast<char>(c - 32) : c; });
  program.named_data = {{"metadata.author", "x"},
                        {hash, bytes},
                        {"scale_" + hash.substr(1) + "0", made::floats(2, 2)},
                        {"other_" + hash, made::floats(2, 3)},
                        {upper, made::floats(2, 4)},
                        {hash + "0", made::floats(2, 5)}};
  const auto payloads = read(made::file(program));
  std::size_t with_hash = 0;
  for (const WeightPayload& each : payloads) {
    CHECK(each.label.find("metadata") == std::string::npos);
    with_hash += each.hashes.size();
    for (const ByteSource& place : each.hashes)
      CHECK(text_of(place) == each.name.substr(each.name.size() - 64));
  }
  CHECK(with_hash == 2);
}

TEST_CASE("a hash is found as a key, as the name of a tensor, and where a delegate asks for it") {
  XNNGraphT graph = empty_graph();
  const std::string bytes = made::floats(2, 1);
  const std::string key = made::hash_of(bytes);
  add_value(graph, tensor_of(1, XNNDatatype_xnn_datatype_quint8, {8}, add_constant(graph, key, 8)));
  made::Program program;
  program.constants = {{"", {2}, key, ScalarType::kFloat32, Place::kExternal},
                       {made::floats(2, 2), {2}, std::string(64, 'a')}};
  program.delegates = {{"XnnpackBackend", payload_of(graph)}, {"XnnpackBackend", payload_of(graph)}};
  const auto payloads = read(made::file(program), made::tensor_data({{bytes, {2}, key}}));
  REQUIRE(payloads.size() == 2);
  CHECK(describe(*payloads[0].layout) == "float32 [2]");  // as the file says, not as the graph
  CHECK(payloads[0].hashes.size() == 3);
  for (const ByteSource& place : payloads[0].hashes) CHECK(text_of(place) == key);
}

TEST_CASE("data of other backends is opaque") {
  made::Program program;
  program.delegates = {{"OtherBackend", "compiled"}};
  CHECK(labels(read(made::file(program))) == "method 'forward', delegate 0 (OtherBackend): opaque\n");
  // An old payload of XNNPACK, without a header, has its constants among its graph.
  XNNGraphT graph = empty_graph();
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(XNNGraph::Pack(builder, &graph), "XN01");
  program.delegates = {{"XnnpackBackend", finished(builder)}};
  CHECK(labels(read(made::file(program))) == "method 'forward', delegate 0 (XnnpackBackend): opaque\n");
}

TEST_CASE("the constants of Vulkan's graphs are payloads") {
  vulkan_graph::VkGraphT graph;
  made_vulkan::add_bytes(graph.constants, "key", made_vulkan::kNamed, 8);
  made_vulkan::add_bytes(graph.constants, "", 4, 8);
  made_vulkan::add_bytes(graph.shaders, "", 0, 4);
  made_vulkan::add_tensor(graph, 1, vulkan_graph::VkDataType_INT32, {2});
  made_vulkan::add_tensor(graph, 0, vulkan_graph::VkDataType_FLOAT32, {2});
  made::Program program;
  program.named_data = {{"key", made::floats(2, 1)}};
  const std::string payload = made_vulkan::payload_of(graph, "codeintegers");
  program.delegates = {{"VulkanBackend", payload}};
  const auto payloads = read(made::file(program));
  CHECK(labels(payloads) ==
        "constant 0 in method 'forward', delegate 0 (VulkanBackend) (key): float32 [2]\n"
        "constant 1 in method 'forward', delegate 0 (VulkanBackend): int32 [2]\n");
  CHECK(text_of(payloads[0].data) == made::floats(2, 1));
  CHECK(text_of(payloads[1].data) == "integers");
  program.delegates = {{"VulkanBackend", "compiled"}};
  CHECK(refused(program) ==
        "kCorrupt: bad: method 'forward', delegate 0 (VulkanBackend): offset 4: expected VH00, found another "
        "beginning");
}

TEST_CASE("a layout that does not fit the data is not taken from a graph") {
  XNNGraphT graph = empty_graph();
  add_value(graph, tensor_of(1, XNNDatatype_xnn_datatype_fp32, {2}, add_constant(graph, "k", 8)));
  made::Program program;
  program.named_data = {{"k", "abc"}};
  program.delegates = {{"XnnpackBackend", payload_of(graph)}};
  CHECK(labels(read(made::file(program))) ==
        "a constant in method 'forward', delegate 0 (XnnpackBackend) (k): of no layout\n");
}

TEST_CASE("data under a key that has some is an error, as the runtime would take one of both") {
  XNNGraphT graph = empty_graph();
  add_value(graph, tensor_of(1, XNNDatatype_xnn_datatype_fp32, {2}, add_constant(graph, "k", 8)));
  made::Program program;
  program.named_data = {{"k", made::floats(2, 1)}};
  program.delegates = {{"XnnpackBackend", payload_of(graph)}};
  const std::string data = made::tensor_data({{made::floats(2, 2), {}, "k"}});
  const TensorDataFile file = made::opened_data(data);
  CHECK(error_of(read_weight_payloads(made::opened(made::file(program)), {&file})) ==
        exactly("kUnsupported: bad: key 'k': expected once, found in bad too"));
}

TEST_CASE("a key that no file has is an error, and so is a damaged payload") {
  made::Program program;
  program.constants = {{"", {2}, "gone", ScalarType::kFloat32, Place::kExternal}};
  CHECK(refused(program) ==
        "kNotFound: bad: method 'forward': expected 'gone' in the program or in a tensor data file, found it "
        "in "
        "neither");
  XNNGraphT graph = empty_graph();
  add_constant(graph, "gone", 8);
  made::Program delegated;
  delegated.delegates = {{"XnnpackBackend", payload_of(graph)}};
  CHECK(
      refused(delegated) ==
      "kNotFound: bad: method 'forward', delegate 0 (XnnpackBackend): expected 'gone' in the program or in a "
      "tensor data file, found it in neither");
  std::string payload = payload_of(graph);
  put_at(payload, 14, std::uint32_t{1} << 30);
  delegated.delegates = {{"XnnpackBackend", payload}};
  CHECK(doctest::String(refused(delegated).c_str()) ==
        containing("kCorrupt: bad: method 'forward', delegate 0 (XnnpackBackend): offset "));
}

}  // namespace
}  // namespace etstream::weight_payloads_test
