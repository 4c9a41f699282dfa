// SPDX-License-Identifier: BSD-3-Clause
#include "formats/pte/backends/backend_payload.h"

#include <doctest/doctest.h>
#include <flatbuffers/flatbuffers.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "formats/pte/backends/made_vulkan_payload.h"
#include "formats/pte/backends/made_xnnpack_payload.h"
#include "formats/pte/backends/vulkan_payload.h"
#include "mlx_graph_generated.h"
#include "test_errors.h"
#include "test_sources.h"
#include "tosa_graph_generated.h"

namespace etstream::backend_payload_test {
namespace {

using namespace std::string_literals;

template <class Integer>
std::string bytes_of_number(Integer number) {
  return {reinterpret_cast<const char*>(&number), sizeof(number)};
}

std::string sized(const std::string& text) {
  return bytes_of_number(static_cast<std::uint32_t>(text.size())) + text;
}

/// Returns a weight of these sizes and strides.
std::string weight(std::int64_t offset, std::uint32_t dimensions, std::int64_t size) {
  std::string out = sized("linear.weight") + sized("key") + bytes_of_number(std::uint64_t{24}) +
                    bytes_of_number(std::int32_t{6}) + bytes_of_number(std::int32_t{1}) +
                    bytes_of_number(offset) + bytes_of_number(dimensions);
  for (std::uint32_t i = 0; i < 2 * dimensions; ++i) out += bytes_of_number(size);
  return out;
}

const std::string kOne = bytes_of_number(std::uint32_t{1});

std::string cuda(const std::string& weights) { return "ETCUDAFQN3" + sized("so_blob") + weights; }

Result<std::optional<BackendPayload>> read(std::string_view backend, const std::string& payload) {
  return read_backend_payload(backend, source_of(payload), "payload");
}

/// Returns "key:size", or "key" if there is no size.
std::vector<std::string> requests(std::string_view backend, const std::string& payload) {
  const auto found = read(backend, payload);
  REQUIRE_MESSAGE(found, found.error().message);
  REQUIRE(*found);
  std::vector<std::string> out;
  for (const NamedDataRequest& request : (*found)->requests) {
    out.push_back(request.key + (request.size ? ":" + std::to_string(*request.size) : ""));
  }
  return out;
}

using Requests = std::vector<std::string>;
using Parts = std::vector<std::string>;
using Facts = std::vector<std::string>;

/// Returns "name offset+size" of each part.
Parts parts(std::string_view backend, const std::string& payload) {
  const auto found = read(backend, payload);
  REQUIRE_MESSAGE(found, found.error().message);
  REQUIRE(*found);
  Parts out;
  for (const PayloadPart& part : (*found)->parts) {
    out.push_back(part.name + " " + std::to_string(part.offset) + "+" + std::to_string(part.size));
  }
  return out;
}

/// Returns "name=value" of each fact.
Facts facts(std::string_view backend, const std::string& payload) {
  const auto found = read(backend, payload);
  REQUIRE_MESSAGE(found, found.error().message);
  REQUIRE(*found);
  Facts out;
  for (const PayloadFact& fact : (*found)->facts) {
    const auto* number = std::get_if<std::int64_t>(&fact.value);
    out.push_back(fact.name + "=" + (number ? std::to_string(*number) : std::get<std::string>(fact.value)));
  }
  return out;
}

TEST_CASE("CUDA's weights by name ask for libraries and storages") {
  CHECK(requests("CudaBackend", cuda(kOne + weight(0, 2, 3))) == Requests{"so_blob", "key:24"});
  CHECK(requests("CudaBackend", cuda(bytes_of_number(std::uint32_t{0}))) == Requests{"so_blob"});
  const std::string one_kind = kOne + bytes_of_number(std::uint64_t{80}) + sized("so_80") + kOne;
  CHECK(requests("CudaBackend", "ETCUDAFQN4" + one_kind + weight(0, 0, 0)) == Requests{"so_80", "key:24"});
  const std::string with_flags = kOne + std::string(12, '\x7f') + sized("so") + kOne;
  CHECK(requests("CudaBackend", "ETCUDAFQN5" + with_flags + weight(0, 64, 0)) == Requests{"so", "key:24"});
}

TEST_CASE("damaged weights by name are errors that say where") {
  const auto error = [](const std::string& payload) { return error_of(read("CudaBackend", payload)); };
  const std::string good = cuda(kOne + weight(0, 2, 3));
  for (std::size_t size = 10; size < good.size(); ++size) {
    CAPTURE(size);
    CHECK(error(good.substr(0, size)) == containing("kCorrupt: payload: offset "));
  }
  CHECK(error(good + "x") == containing("expected the end, found 1 byte"));
  CHECK(error(cuda(kOne + weight(-1, 2, 3))) == containing("expected an offset from 0 on, found -1"));
  CHECK(error(cuda(kOne + weight(0, 2, -3))) == containing("expected a size from 0 on, found -3"));
  CHECK(error(good.substr(0, good.size() - 16) + bytes_of_number(std::int64_t{-1})) ==
        containing("expected a stride from 0 on, found -1"));
  CHECK(error("ETCUDAFQN4" + bytes_of_number(std::uint32_t{257})) ==
        containing("expected at most 256 libraries, found 257"));
  CHECK(error(cuda(kOne + weight(0, 65, 3))) == containing("expected at most 64 dimensions, found 65"));
  CHECK(error(cuda(bytes_of_number((1U << 20) + 1))) == containing("expected at most 1048576 weights"));
  CHECK(error("ETCUDAFQN4" + bytes_of_number(std::uint32_t{0})) ==
        containing("expected a library, found none"));
  CHECK(error("ETCUDAFQN3" + sized("")) ==
        containing("the key of a library of 1 byte to the end, found 0 bytes"));
}

std::string block(std::string name, const std::string& data, char is_external = 0) {
  name.resize(16);
  std::string out = name + bytes_of_number(static_cast<std::uint32_t>(data.size())) + is_external +
                    std::string(11, '\0') + data;
  return out + std::string((16 - data.size() % 16) % 16, '\0');
}

TEST_CASE("blocks for Ethos-U are asked for by their keys") {
  const std::string key(64, 'a');
  const std::string begin = block("vela_bin_stream", "") + block("cmd_data", "COP1");
  const std::string end = block("vela_end_stream", "");
  CHECK(requests("EthosUBackend", begin + end).empty());
  CHECK(requests("EthosUBackend", begin + block("weight_data", key, 1) + end) == Requests{key});
}

TEST_CASE("inputs and outputs for Ethos-U are in the memory for working data") {
  const auto stream = [](const std::string& what, std::int32_t size, std::int32_t offset,
                         std::int32_t region) {
    std::string tensors = bytes_of_number(std::int32_t{1});
    for (const std::int32_t each : {1, 1, 1, 1, size, 4, 2, offset, region}) tensors += bytes_of_number(each);
    return block("vela_bin_stream", "") + block("scratch_size", bytes_of_number(std::uint32_t{100})) +
           block(what, tensors) + block("vela_end_stream", "");
  };
  CHECK(facts("EthosUBackend", stream("inputs", 3, 76, 1)) ==
        Facts{"scratch_size=100", "input 0=[1, 1, 1, 1, 3, 4] of 2 bytes each, at 76 in region 1"});
  CHECK(facts("EthosUBackend", stream("outputs", 3, 77, 2)).size() == 2);  // in other memory
  CHECK(facts("EthosUBackend", stream("inputs", 0, 0, 1)).size() == 2);
  const auto error = [](const std::string& payload) { return error_of(read("EthosUBackend", payload)); };
  CHECK(error(stream("inputs", 3, 77, 1)) ==
        exactly("kCorrupt: payload: expected input 0 in 100 bytes of working data, found [1, 1, 1, 1, 3, 4] "
                "of 2 bytes each, at 77 in region 1"));
  for (const std::int32_t size : {-1, 14, 0x7fffffff}) {
    CHECK(error(stream("outputs", size, 0, 1)) == containing("expected output 0 in 100 bytes"));
  }
  CHECK(error(stream("outputs", 1, -4, 1)) == containing("expected output 0 in 100 bytes"));
  CHECK(error(stream("outputs", -1, 0, 2)) == containing("expected output 0 in 100 bytes"));
}

/// Returns a header before a graph, and four bytes of data behind it.
std::string vulkan(const std::string& graph, std::uint32_t size, std::uint32_t data) {
  return made_vulkan::payload_of(graph, size, data, "data");
}

TEST_CASE("Vulkan's graphs ask for constants and shaders") {
  vulkan_graph::VkGraphT graph;
  made_vulkan::add_bytes(graph.constants, "", 1, 3);
  made_vulkan::add_bytes(graph.constants, "key", made_vulkan::kNamed, 24);
  made_vulkan::add_bytes(graph.shaders, "shader", made_vulkan::kNamed, 7);
  const std::string bytes = made_vulkan::packed(graph);
  const auto size = static_cast<std::uint32_t>(bytes.size());
  const std::string good = vulkan(bytes, size, 32 + size);
  CHECK(requests("VulkanBackend", good) == Requests{"key:24", "shader:7"});
  CHECK(parts("VulkanBackend", good) ==
        Parts{"graph 32+" + std::to_string(size), "data " + std::to_string(32 + size) + "+4"});
  const auto error = [](const std::string& payload) { return error_of(read("VulkanBackend", payload)); };
  CHECK(error(good.substr(0, 29)) == containing("offset 0: expected a header of 30 bytes, found 29"));
  CHECK(error(vulkan(bytes, size + 5, 32 + size)) ==
        containing("offset 10: expected a graph in bytes 30 to "));
  CHECK(error(vulkan(bytes, size, 31 + size)) == containing("offset 18: expected data in bytes "));
  CHECK(error(vulkan(bytes, size, 33 + size)) == containing("offset 18: expected data in bytes "));
  CHECK(error(vulkan(std::string(bytes.size(), '\0'), size, 32 + size)) == containing("kCorrupt: payload: "));
  std::string with_zero = good;
  with_zero[good.find("shader") + 1] = '\0';
  CHECK(error(with_zero) == containing("a name without a zero byte"));
  std::string short_one = good;
  short_one[8] = 29;
  CHECK(error(short_one) == containing("offset 8: expected a length of at least 30, found 29"));
  graph.constants[0]->length = 4;
  CHECK(error(vulkan(made_vulkan::packed(graph), size, 32 + size)) ==
        containing("expected a constant or a shader in 4 bytes, found 4 bytes from 1 on"));
}

/// Returns a line for each constant of a graph with this data behind it: "USE: BYTES OR KEY, SIZE, LAYOUT".
std::string vulkan_constants(const vulkan_graph::VkGraphT& graph, const std::string& data) {
  const std::string payload = made_vulkan::payload_of(graph, data);
  const auto constants = read_vulkan_constants(source_of(payload), "payload");
  REQUIRE_MESSAGE(constants, constants.error().message);
  std::string out;
  for (const PayloadConstant& each : *constants) {
    const std::string bytes =
        payload.substr(static_cast<std::size_t>(each.position),
                       each.key.empty() ? static_cast<std::size_t>(each.size) : each.key.size());
    CHECK((each.key.empty() || bytes == each.key));
    out += each.use + ": " + bytes + ", " + std::to_string(each.size) + ", " +
           (each.layout ? describe(*each.layout) : "of no layout") + "\n";
  }
  return out;
}

TEST_CASE("Vulkan's constants lie where the graph says, as the tensors that have their numbers") {
  using namespace vulkan_graph;  // NOLINT: the names of datatypes
  VkGraphT graph;
  made_vulkan::add_bytes(graph.constants, "", 1, 3);
  made_vulkan::add_bytes(graph.constants, "key", made_vulkan::kNamed, 24);
  made_vulkan::add_bytes(graph.constants, "", made_vulkan::kNamed, 0);
  made_vulkan::add_bytes(graph.constants, "", 7, 1);
  made_vulkan::add_bytes(graph.shaders, "shader", made_vulkan::kNamed, 7);
  const std::string unread =
      "constant 0: bcd, 3, of no layout\n"
      "constant 1: key, 24, of no layout\n"
      "constant 2: , 0, of no layout\n"
      "constant 3: h, 1, of no layout\n";
  CHECK(vulkan_constants(graph, "abcdefgh") == unread);
  // Tensors of other numbers are no constants.
  for (const std::int32_t number : {-1, 4, INT32_MIN, INT32_MAX}) {
    made_vulkan::add_tensor(graph, number, VkDataType_UINT8, {1});
  }
  CHECK(vulkan_constants(graph, "abcdefgh") == unread);
  made_vulkan::add_tensor(graph, 3, VkDataType_BOOL, {1, 1});
  made_vulkan::add_tensor(graph, 1, VkDataType_FLOAT32, {2, 3});
  made_vulkan::add_tensor(graph, 0, VkDataType_UINT8, {3});
  CHECK(vulkan_constants(graph, "abcdefgh") ==
        "constant 0: bcd, 3, uint8 [3]\n"
        "constant 1: key, 24, float32 [2, 3]\n"
        "constant 2: , 0, of no layout\n"
        "constant 3: h, 1, bool [1, 1]\n");
}

TEST_CASE("a Vulkan graph without constants may have tensors") {
  for (const std::int32_t number : {-1, 0, 1}) {
    vulkan_graph::VkGraphT graph;
    made_vulkan::add_tensor(graph, number, vulkan_graph::VkDataType_BOOL, {});
    CHECK(vulkan_constants(graph, "").empty());
  }
}

TEST_CASE("a value of a Vulkan graph that is no tensor gives a constant no layout") {
  using namespace vulkan_graph;  // NOLINT: the names of values
  VkGraphT graph;
  made_vulkan::add_bytes(graph.constants, "", 0, 1);
  for (const GraphTypes type : {GraphTypes_NONE, GraphTypes_Null, GraphTypes_Int, GraphTypes_SymInt}) {
    graph.values.push_back(std::make_unique<VkValueT>());
    graph.values.back()->value.type = type;
    if (type != GraphTypes_NONE) graph.values.back()->value.value = new UnreadT();
  }
  CHECK(vulkan_constants(graph, "a") == "constant 0: a, 1, of no layout\n");
  // A tensor's fields are 0 unless they are set: the number of its constant, and the datatype of booleans.
  made_vulkan::add_tensor(graph, 0, VkDataType_BOOL, {});
  CHECK(vulkan_constants(graph, "a") == "constant 0: a, 1, bool []\n");
}

TEST_CASE("the datatypes of Vulkan's constants are known by their numbers, if they fit the size") {
  const auto layout = [](int datatype, std::uint64_t size) {
    vulkan_graph::VkGraphT graph;
    made_vulkan::add_bytes(graph.constants, "k", made_vulkan::kNamed, size);
    made_vulkan::add_tensor(graph, 0, static_cast<vulkan_graph::VkDataType>(datatype), {2});
    return vulkan_constants(graph, "").substr(("constant 0: k, " + std::to_string(size) + ", ").size());
  };
  const std::pair<const char*, std::uint64_t> types[] = {{"bool", 1},    {"uint8", 1},   {"int8", 1},
                                                         {"int32", 4},   {"float16", 2}, {"float32", 4},
                                                         {"float64", 8}, {"int64", 8}};
  int number = 0;
  for (const auto& [name, size] : types) {
    CAPTURE(number);
    CHECK(layout(number, 2 * size) == name + " [2]\n"s);
    CHECK(layout(number, 2 * size + 1) == "of no layout\n");
    ++number;
  }
  vulkan_graph::VkGraphT large;
  made_vulkan::add_bytes(large.constants, "k", made_vulkan::kNamed, std::uint64_t{1} << 31);
  made_vulkan::add_tensor(large, 0, vulkan_graph::VkDataType_UINT8, {1U << 31});
  CHECK(vulkan_constants(large, "") == "constant 0: k, 2147483648, of no layout\n");
  for (const int other : {-128, -1, 8, 127}) {
    for (const std::uint64_t size : {2U, 4U, 8U, 16U}) {
      CAPTURE(other);
      CHECK(layout(other, size) == "of no layout\n");
    }
  }
}

TEST_CASE(
    "constants of a payload that begins in another way than Vulkan's, or that is damaged, are refused") {
  const auto error = [](const std::string& payload) {
    return error_of(read_vulkan_constants(source_of(payload), "p"));
  };
  const std::string other = "kCorrupt: p: offset 4: expected VH00, found another beginning";
  vulkan_graph::VkGraphT graph;
  made_vulkan::add_bytes(graph.constants, "", 0, 5);
  std::string payload = made_vulkan::payload_of(graph, "data");
  CHECK(error(payload) == containing("expected a constant or a shader in 4 bytes, found 5 bytes from 0 on"));
  payload[7] = '1';
  CHECK(error(payload) == exactly(other));
  CHECK(error("") == exactly(other));
}

/// Returns a graph with two tensors that have these numbers and names.
std::string mlx_graph_of(std::uint32_t constants, std::uint32_t first, std::uint32_t second) {
  mlx_graph::MLXGraphT graph;
  graph.version = "1";
  graph.num_constant_tensors = constants;
  graph.num_input_tensors = 3;
  graph.num_output_tensors = 4;
  const auto add = [&](const char* name, std::uint32_t number, mlx_graph::SlotType type) {
    auto slot = std::make_unique<mlx_graph::NamedSlotT>();
    slot->name = name;
    slot->slot = std::make_unique<mlx_graph::SlotVariantT>();
    slot->slot->idx = number;
    slot->slot->slot_type = type;
    graph.named_slots.push_back(std::move(slot));
  };
  add("weight", first, mlx_graph::SlotType_Tensor);
  add("no tensor", 0, mlx_graph::SlotType_IntValue);
  add("bias", second, mlx_graph::SlotType_Tensor);
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(mlx_graph::MLXGraph::Pack(builder, &graph));
  return {reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize()};
}

/// As serialize() of backends/mlx/serialization/mlx_graph_serialize.py of ExecuTorch 1.5.1.
std::string mlx(const std::string& graph, std::uint64_t data_size) {
  const std::string padding((16 - (24 + graph.size()) % 16) % 16, '\0');
  return std::string(4, '\0') + "MLX0" + bytes_of_number(std::uint64_t{24 + graph.size() + padding.size()}) +
         bytes_of_number(data_size) + graph + padding;
}

TEST_CASE("MLX's graphs ask for their constants by name") {
  const std::string good = mlx(mlx_graph_of(2, 0, 1), 0);
  CHECK(requests("MLXBackend", good) == Requests{"weight", "bias"});
  CHECK(parts("MLXBackend", good) ==
        Parts{"graph 24+" + std::to_string(good.size() - 24), "data " + std::to_string(good.size()) + "+0"});
  CHECK(parts("MLXBackend", mlx(mlx_graph_of(2, 0, 1), 4) + "data").back() ==
        "data " + std::to_string(good.size()) + "+4");
  CHECK(facts("MLXBackend", good) == Facts{"version=1", "constants=2", "inputs=3", "outputs=4"});
  CHECK(requests("MLXBackend", mlx(mlx_graph_of(1, 0, 0), 0)) == Requests{"bias"});
  const auto error = [](const std::string& payload) { return error_of(read("MLXBackend", payload)); };
  CHECK(error(mlx(mlx_graph_of(2, 0, 2), 0)) == containing("expected a name of constant 1 of 2, found none"));
  CHECK(error(mlx(mlx_graph_of(2, 0, 1), 1)) == containing("offset 8: expected data in bytes 25 to "));
  CHECK(error(good.substr(0, 23)) == containing("expected a header of 24 bytes, found 23"));
  CHECK(error(good.substr(0, good.size() - 1)) == containing("offset 8: expected data"));
  CHECK(error(mlx(std::string(64, '\0'), 0)) == containing("kCorrupt: payload: "));
  std::string with_zero = good;
  with_zero[good.find("weight") + 1] = '\0';
  CHECK(error(with_zero) == containing("a name without a zero byte"));
}

/// As BuildContextCustomBuffer() of backends/qualcomm/runtime/backends/QnnCustomProtocol.cpp of ExecuTorch
/// 1.5.1.
std::string qnn(std::uint64_t size, const std::string& binary) {
  return "\xCD\xAB\x78\x56" + bytes_of_number(std::int64_t{-5}) + bytes_of_number(size) +
         std::string(236, '\0') + binary;
}

TEST_CASE("a context binary is behind QNN's header") {
  CHECK(parts("QnnBackend", qnn(6, "binary")) == Parts{"context_binary 256+6"});
  CHECK(facts("QnnBackend", qnn(6, "binary")) == Facts{"signature=-5"});
  const auto error = [](const std::string& payload) { return error_of(read("QnnBackend", payload)); };
  CHECK(error(qnn(7, "binary")) ==
        containing("offset 12: expected a context binary in bytes 0 to 262, found 7"));
  CHECK(error(qnn(0, "").substr(0, 255)) == containing("expected a header of 256 bytes, found 255"));
}

/// As Header of src/header.hpp of the VGF library 0.10.
std::string vgf(const std::string& magic, char major, std::uint64_t last_size) {
  std::string out = magic + bytes_of_number(std::uint32_t{307}) + std::string{major, '\4', '\2', '\0'} +
                    std::string(4, '\0');
  for (std::uint64_t i = 0; i < 4; ++i) {
    out += bytes_of_number(128 + 8 * i) + bytes_of_number(i == 3 ? last_size : 8);
  }
  return out + std::string(48 + 32, '\0');
}

TEST_CASE("a VGF has four sections") {
  for (const char* magic : {"VGF1", "\xC3\xD2\xE1\xF0"}) {
    CHECK(parts("VgfBackend", vgf(magic, 0, 8)) ==
          Parts{"modules 128+8", "model_sequence 136+8", "model_resources 144+8", "constants 152+8"});
    CHECK(facts("VgfBackend", vgf(magic, 0, 8)) == Facts{"version=0.4.2", "vulkan_headers=307"});
  }
  CHECK_FALSE(read("VgfBackend", vgf("VGF1", 1, 8)).value());
  const auto error = [](const std::string& payload) { return error_of(read("VgfBackend", payload)); };
  CHECK(error(vgf("VGF1", 0, 9)) == containing("offset 64: expected constants in bytes 0 to 160, found 9"));
  CHECK(error(vgf("VGF1", 0, 8).substr(0, 127)) == containing("expected a header of 128 bytes, found 127"));
}

std::string tosa(std::uint64_t offset) {
  tosa_graph::TosaGraphT graph;
  graph.version = std::make_unique<tosa_graph::VersionT>();
  graph.version->_major = 1;
  graph.version->_minor = 0;
  graph.version->_patch = 0;
  graph.version->_draft = false;
  auto block = std::make_unique<tosa_graph::TosaBasicBlockT>();
  for (const char* name : {"x", "weight", "large", "bias"}) {
    block->tensors.push_back(std::make_unique<tosa_graph::TosaTensorT>());
    block->tensors.back()->name = name;
  }
  block->tensors[1]->data = {1, 2, 3};
  block->tensors[3]->data = {9};
  block->tensors[2]->offset = offset;
  block->tensors[2]->size = offset > 0 ? 16 : 0;
  graph.regions.push_back(std::make_unique<tosa_graph::TosaRegionT>());
  graph.regions.back()->blocks.push_back(std::move(block));
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(tosa_graph::TosaGraph::Pack(builder, &graph), tosa_graph::TosaGraphIdentifier());
  return {reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize()};
}

TEST_CASE("constants are the parts of TOSA's graphs") {
  const std::string graph = tosa(0);
  const std::size_t data = graph.find("\1\2\3");
  CHECK(parts("TOSABackend", graph).at(0) == "weight " + std::to_string(data) + "+3");
  CHECK(facts("TOSABackend", graph) == Facts{"version=1.0.0", "operators=0", "tensors=4", "constants=2"});
  CHECK(parts("TOSABackend", tosa(1)).size() == 2);  // an offset of 1 says that the data is in the table
  CHECK(parts("TOSABackend", tosa(2)).at(1) == "large 2+16");
  const auto error = [](const std::string& payload) { return error_of(read("TOSABackend", payload)); };
  CHECK(error(tosa(4000)) == containing("found 16 bytes from 4000 on"));
  CHECK(error(graph.substr(0, 60)) == containing("kCorrupt: payload: "));
  std::string without_version = graph;
  const std::size_t vtable = vtable_of(graph, get_at<std::uint32_t>(graph, 0));
  put_at<std::uint16_t>(without_version, vtable + tosa_graph::TosaGraph::VT_VERSION, 0);
  CHECK(error(without_version) == containing("expected TosaGraph.version, found nothing"));
}

std::string reversed(std::string words) {
  std::ranges::reverse(words);
  return words;
}

/// As serialize() of backends/apple/coreml/runtime/inmemoryfs/inmemory_filesystem.cpp of ExecuTorch 1.5.1.
std::string coreml(const std::string& nodes) {
  return "{}weights" + reversed(R"({"nodes":[)" + nodes + R"(]})");
}

std::string file_node(const std::string& name, int offset, int size) {
  return R"({"name":")" + name + R"(","kind":0,"children":null,"dataRegion":{"offset":)" +
         std::to_string(offset) + R"(,"size":)" + std::to_string(size) + "}}";
}

std::string folder_node(const std::string& name, const std::string& children) {
  return R"({"name":")" + name + R"(","kind":1,"dataRegion":{"offset":0,"size":0},"children":{)" + children +
         "}}";
}

TEST_CASE("files are the parts of Core ML's folders") {
  const std::string files = file_node("metadata.json", 0, 2) + "," + file_node("weight } \\\"", 2, 7) + ",";
  const std::string folders = folder_node("model.mlpackage", R"("weight } \"":1)") + "," +
                              folder_node("root", R"("metadata.json":0,"model.mlpackage":2)");
  const std::string good = coreml(files + folders);
  const Parts expected{"metadata.json 0+2", "model.mlpackage/weight } \" 2+7"};
  CHECK(parts("CoreMLBackend", good) == expected);
  CHECK(parts("CoreMLBackend", good + std::string(5000, '\0')) == expected);  // as Python's bytes end
  CHECK(parts("CoreMLBackend", good + " \n ") == expected);
  const std::string alone = reversed(R"({"nodes":[)" + file_node("f", 0, 2) + "]}");
  CHECK(parts("CoreMLBackend", alone + std::string(4097 - alone.size(), ' ')) == Parts{" 0+2"});
  const auto error = [](const std::string& nodes) { return error_of(read("CoreMLBackend", coreml(nodes))); };
  const auto error_of_root = [&](const std::string& children) {
    return error(files + folder_node("root", children));
  };
  CHECK(error("") == containing("expected a file or a folder in its JSON, found none"));
  CHECK(error(file_node("f", 0, 10000)) == containing("found 10000 bytes from 0 on"));
  CHECK(error_of_root(R"("x":2)") == containing("expected an own node before 2 for 'x', found node 2"));
  CHECK(error_of_root(R"("metadata.json":0,"other":0)") == containing("for 'other', found node 0"));
  CHECK(error_of_root(R"("x":0)") == containing("expected a node named 'x', found 'metadata.json'"));
  for (const char* name : {"..", "a/b", "."}) {
    CHECK(error(file_node(name, 0, 0) + "," + folder_node("root", "\"" + std::string(name) + "\":0")) ==
          containing("expected a file's name of 1 to 255 bytes, which is no path, found '"));
  }
  const auto named = [](const std::string& name) {
    return coreml(file_node(name, 0, 2) + "," + folder_node("root", "\"" + name + "\":0"));
  };
  CHECK(parts("CoreMLBackend", named(std::string(255, 'n'))) == Parts{std::string(255, 'n') + " 0+2"});
  CHECK(error_of(read("CoreMLBackend", named(std::string(256, 'n')))) == containing("which is no path"));
  CHECK(error(R"({"kind":2})") == containing("payload: JSON: line 1: "));
  CHECK(error(R"({"kind":-1})") == containing("expected a number from 0 on, found -1"));
  std::string deep = file_node("n", 0, 0);
  for (int i = 0; i < 16; ++i) deep += "," + folder_node("n", R"("n":)" + std::to_string(i));
  CHECK(parts("CoreMLBackend", coreml(deep)).size() == 1);
  deep += "," + folder_node("n", R"("n":16)");
  CHECK(error(deep) == containing("folders at most 16 deep"));
  std::string paths;
  std::string children;
  for (int i = 0; i < 20; ++i) {
    const std::string name = "f" + std::to_string(i);
    paths += file_node(name, 0, 0) + ",";
    children += (i > 0 ? ",\"" : "\"") + name + "\":" + std::to_string(i);
  }
  for (int i = 20; i < 36; ++i) {
    paths += folder_node(std::string(255, 'n'), children) + (i < 35 ? "," : "");
    children = "\"" + std::string(255, 'n') + "\":" + std::to_string(i);
  }
  CHECK(error(paths) == containing("payload: offset 0: expected objects that are shared at most 4 times"));
  std::string many = file_node("n", 0, 0);
  for (int i = 1; i < 4096; ++i) many += "," + file_node("n", 0, 0);
  CHECK(parts("CoreMLBackend", coreml(many)).size() == 1);
  many += "," + file_node("n", 0, 0);
  CHECK(error(many) == containing("expected at most 4096 nodes"));
  CHECK(error(std::string(1 << 20, ' ')) == containing("JSON of at most 1048576 bytes"));
  for (const char* other : {"", "binary", "}]1[:\"sedon\"", "}", "}{x"}) {
    const auto found = read("CoreMLBackend", other);
    REQUIRE(found);
    CHECK_FALSE(found->has_value());
  }
}

TEST_CASE("a reference to Core ML's data is asked for by its key") {
  const std::string good = R"(CMJR{"version": "1", "key": "coreml_1", "functionName": "forward"})";
  CHECK(requests("CoreMLBackend", good) == Requests{"coreml_1"});
  CHECK(facts("CoreMLBackend", good) == Facts{"function=forward"});
  const auto error = [](const std::string& payload) { return error_of(read("CoreMLBackend", payload)); };
  CHECK(error(R"(CMJR{"version": 1})") == containing("offset 4: expected a key in its JSON, found none"));
  CHECK(error(R"(CMJR{"key": 1})") ==
        containing("payload: JSON: line 1: expected a string, found an integer"));
  CHECK(requests("CoreMLBackend", R"(CMJR{"key": "k"})" + std::string((1 << 20) - 12, ' ')) == Requests{"k"});
  CHECK(error("CMJR" + std::string((1 << 20) + 1, ' ')) == containing("JSON of at most 1048576 bytes"));
}

TEST_CASE("XNNPACK's graphs ask for constants by key, but for the first, which is a placeholder") {
  xnnpack_graph::XNNGraphT graph = made_xnnpack::empty_graph();
  graph.constant_data[0]->named_key = "placeholder";
  made_xnnpack::add_constant(graph, "key", 24);
  made_xnnpack::add_inner_constant(graph, 0, 8);
  const std::string good = made_xnnpack::payload_of(graph);
  CHECK(requests("XnnpackBackend", good) == Requests{"key:24"});
  const auto error = [](const std::string& payload) { return error_of(read("XnnpackBackend", payload)); };
  CHECK(error(std::string(29, '\0')) ==
        exactly("kCorrupt: payload: offset 0: expected XNNPACK's header of 30 bytes, found 29"));
  CHECK(error(std::string(30, 'n')) == exactly("kCorrupt: payload: offset 4: expected the identifier of "
                                               "XNNPACK's graph (XN00, XN01), found 'nnnn'"));
  std::string with_zero = good;
  with_zero[good.rfind("key") + 1] = '\0';
  CHECK(error(with_zero) == containing("a name without a zero byte"));
}

TEST_CASE("other payloads, and those of other backends, are none") {
  for (const char* backend : {"CudaBackend", "VulkanBackend", "EthosUBackend", "CoreMLBackend", "MLXBackend",
                              "QnnBackend", "TOSABackend", "VgfBackend", "SomeBackend"}) {
    for (const std::string& payload :
         {std::string(), std::string("ETCUDAFQN2"), std::string("x"), std::string(64, '\0')}) {
      const auto found = read(backend, payload);
      REQUIRE(found);
      CHECK_FALSE(found->has_value());
    }
  }
}

}  // namespace
}  // namespace etstream::backend_payload_test
