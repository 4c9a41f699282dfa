// SPDX-License-Identifier: BSD-3-Clause
#include "formats/pte/backends/backend_payload.h"

#include <doctest/doctest.h>
#include <flatbuffers/flatbuffers.h>

#include <string>
#include <utility>

#include "test_errors.h"
#include "test_sources.h"
#include "vulkan_graph_generated.h"

namespace etstream::backend_payload_test {
namespace {

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

TEST_CASE("CUDA's weights by name ask for libraries and storages") {
  CHECK(requests("CudaBackend", cuda(kOne + weight(0, 2, 3))) == Requests{"so_blob", "key:24"});
  CHECK(requests("CudaBackend", cuda(bytes_of_number(std::uint32_t{0}))) == Requests{"so_blob"});
  const std::string one_kind = kOne + bytes_of_number(std::uint64_t{80}) + sized("so_80") + kOne;
  CHECK(requests("CudaBackend", "ETCUDAFQN4" + one_kind + weight(0, 0, 0)) == Requests{"so_80", "key:24"});
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

std::string vulkan(const std::string& graph, std::uint32_t size) {
  std::string out = std::string(4, '\0') + "VH00" + bytes_of_number(std::uint16_t{30}) +
                    bytes_of_number(std::uint32_t{32}) + bytes_of_number(size) + std::string(14, '\0');
  return out + graph;
}

TEST_CASE("Vulkan's graphs ask for constants and shaders") {
  vulkan_graph::VkGraphT graph;
  const auto add = [](auto& to, const char* key, std::uint64_t length) {
    to.push_back(std::make_unique<vulkan_graph::VkBytesT>());
    to.back()->named_key = key;
    to.back()->length = length;
  };
  add(graph.constants, "", 24);
  add(graph.constants, "key", 24);
  add(graph.shaders, "shader", 7);
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(vulkan_graph::VkGraph::Pack(builder, &graph), vulkan_graph::VkGraphIdentifier());
  const std::string bytes(reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize());
  const auto size = static_cast<std::uint32_t>(bytes.size());
  CHECK(requests("VulkanBackend", vulkan(bytes, size)) == Requests{"key:24", "shader:7"});
  const auto error = [](const std::string& payload) { return error_of(read("VulkanBackend", payload)); };
  CHECK(error(vulkan(bytes, size + 1)) == containing("offset 10: expected a graph inside "));
  CHECK(error(vulkan(std::string(bytes.size(), '\0'), size)) == containing("kCorrupt: payload: "));
}

TEST_CASE("other payloads, and those of other backends, are none") {
  for (const char* backend : {"CudaBackend", "VulkanBackend", "EthosUBackend", "XnnpackBackend"}) {
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
