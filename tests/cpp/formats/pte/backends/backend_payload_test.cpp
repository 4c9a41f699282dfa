// SPDX-License-Identifier: BSD-3-Clause
//
// Errors of reading the data of delegates, which say nothing about what is in it.
#include "formats/pte/backends/backend_payload.h"

#include <doctest/doctest.h>
#include <flatbuffers/flatbuffers.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "etstream/program.h"
#include "file_bytes.h"
#include "formats/pte/backends/made_vulkan_payload.h"
#include "formats/pte/backends/made_xnnpack_payload.h"
#include "test_errors.h"
#include "test_paths.h"
#include "test_sources.h"

namespace etstream::backend_payload_test {
namespace {

using namespace std::string_literals;

template <class Integer>
std::string bytes_of_number(Integer number) {
  return {reinterpret_cast<const char*>(&number), sizeof(number)};
}

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

TEST_CASE("payloads that are known by a magic alone say what they are, and not what they ask for") {
  const auto what = [](std::string_view backend, std::string payload, std::size_t size) {
    payload.resize(size);
    const auto found = read(backend, payload);
    REQUIRE_MESSAGE(found, found.error().message);
    REQUIRE(*found);
    CHECK_FALSE((*found)->tells_requests);
    CHECK_FALSE(read(backend, payload.substr(0, size - 1)).value());
    return (*found)->what;
  };
  CHECK(what("CudaBackend", "ETCUDAFQN3", 10) == "weights by name (ETCUDAFQN)");
  CHECK(what("CoreMLBackend", "CMJR", 4) == "a reference (CMJR)");
  CHECK(what("MLXBackend", std::string(4, '\0') + "MLX0", 24) == "a graph (MLX0)");
  CHECK(what("QnnBackend", "\xCD\xAB\x78\x56", 256) == "a context binary (0x5678ABCD)");
  CHECK(what("TOSABackend", std::string(4, '\0') + "TOSA", 8) == "a graph (TOSA)");
  CHECK(what("VgfBackend", "VGF1", 128) == "sections (VGF1)");
}

TEST_CASE("other payloads, and those of other backends, are none") {
  for (const char* backend : {"CudaBackend", "VulkanBackend", "EthosUBackend", "CoreMLBackend", "MLXBackend",
                              "QnnBackend", "TOSABackend", "VgfBackend", "SomeBackend"}) {
    for (const std::string& payload :
         {std::string(), std::string("ETCUDAFQ"), std::string("x"), std::string(64, '\0')}) {
      const auto found = read(backend, payload);
      REQUIRE(found);
      CHECK_FALSE(found->has_value());
    }
  }
}

TEST_CASE("an error of reading the data of a delegate is passed on, as it is none of the data") {
  const std::string bytes = content_of(kGoldenDir + "/delegated_program/program.pte");
  // XNNPACK's header is where the data begins.
  const std::size_t data = bytes.find("XH00");
  REQUIRE(data != std::string::npos);
  const auto file =
      ByteSource::concatenation({source_of(bytes.substr(0, data)), failing(bytes.size() - data, 0)});
  REQUIRE(file);
  const auto program = ProgramFile::open(*file);
  REQUIRE_MESSAGE(program, program.error().message);
  CHECK(error_of(read_data_requests(program->model())) == "kIo: the disk is on fire");
  CHECK(error_of(read_delegate_payloads(*program)) == "kIo: the disk is on fire");
  CHECK(error_of(read_named_data_uses(*program)) == "kIo: the disk is on fire");
}

}  // namespace

}  // namespace etstream::backend_payload_test
