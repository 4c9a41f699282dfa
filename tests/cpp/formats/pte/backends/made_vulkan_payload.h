// SPDX-License-Identifier: BSD-3-Clause
//
// Vulkan's payloads, made by hand.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "file_bytes.h"
#include "vulkan_graph_generated.h"

namespace etstream::made_vulkan {

constexpr std::uint64_t kNamed = ~std::uint64_t{0};  // the offset of what has a key

/// Adds a constant or a shader: a range of the data, or named data.
inline void add_bytes(std::vector<std::unique_ptr<vulkan_graph::VkBytesT>>& to, const std::string& key,
                      std::uint64_t offset, std::uint64_t length) {
  to.push_back(std::make_unique<vulkan_graph::VkBytesT>());
  to.back()->named_key = key;
  to.back()->offset = offset;
  to.back()->length = length;
}

/// Adds a tensor whose constant has this number.
inline void add_tensor(vulkan_graph::VkGraphT& graph, std::int32_t constant,
                       vulkan_graph::VkDataType datatype, std::vector<std::uint32_t> dims) {
  auto tensor = std::make_unique<vulkan_graph::VkTensorT>();
  tensor->constant_id = constant;
  tensor->datatype = datatype;
  tensor->dims = std::move(dims);
  graph.values.push_back(std::make_unique<vulkan_graph::VkValueT>());
  graph.values.back()->value.type = vulkan_graph::GraphTypes_VkTensor;
  graph.values.back()->value.value = tensor.release();
}

inline std::string packed(const vulkan_graph::VkGraphT& graph) {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(vulkan_graph::VkGraph::Pack(builder, &graph), vulkan_graph::VkGraphIdentifier());
  return finished(builder);
}

/// Returns a header before a graph, of that size in it, and the data behind it, from that offset on.
inline std::string payload_of(const std::string& graph, std::uint32_t size, std::uint32_t offset,
                              const std::string& data) {
  const std::uint32_t start = 32;
  const std::uint16_t length = 30;
  const std::uint64_t data_size = data.size();
  std::string out(start, '\0');
  std::memcpy(out.data() + 4, "VH00", 4);
  std::memcpy(out.data() + 8, &length, 2);
  std::memcpy(out.data() + 10, &start, 4);
  std::memcpy(out.data() + 14, &size, 4);
  std::memcpy(out.data() + 18, &offset, 4);
  std::memcpy(out.data() + 22, &data_size, 8);
  return out + graph + data;
}

inline std::string payload_of(const vulkan_graph::VkGraphT& graph, const std::string& data) {
  const std::string bytes = packed(graph);
  const auto size = static_cast<std::uint32_t>(bytes.size());
  return payload_of(bytes, size, 32 + size, data);
}

}  // namespace etstream::made_vulkan
