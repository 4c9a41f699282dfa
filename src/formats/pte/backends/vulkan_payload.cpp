// SPDX-License-Identifier: BSD-3-Clause
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/checked.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "flatbuffer/flatbuffer_verifier.h"
#include "flatbuffer/schema.h"
#include "flatbuffer/table_reader.h"
#include "formats/pte/backends/backend_payload.h"
#include "vulkan_graph_bfbs_generated.h"
#include "vulkan_graph_fields_generated.h"

namespace etstream {

namespace {

/// A payload that was opened: its graph, and the data behind it.
struct VulkanPayload {
  FlatbufferView graph;
  const vulkan_graph::Fields& fields;  // of its schema
  PayloadPart graph_part;
  PayloadPart data;
};

/// A range of the data, or named data.
struct VulkanBytes {
  std::string key;             // empty for a range of the data
  std::uint64_t position = 0;  // where the key's characters are in the payload, or the range, in bytes
  std::uint64_t size = 0;      // in bytes
};

/// Opens a payload; returns nothing for one that begins in another way.
Result<std::optional<VulkanPayload>> open_vulkan(const ByteSource& payload, const std::string& name) {
  constexpr std::size_t kHeaderSize = 30;
  ETSTREAM_ASSIGN(const PayloadHeader header, PayloadHeader::read(payload, kHeaderSize, name));
  if (!header.has(4, "VH00")) return std::optional<VulkanPayload>();
  ETSTREAM_TRY(header.check_size());
  const auto length = header.number<std::uint16_t>(8);
  if (length < kHeaderSize) {
    return unexpected(ErrorCode::kCorrupt, {name, 8}, "a length of at least {}, found {}", kHeaderSize,
                      length);
  }
  PayloadPart graph{"graph", header.number<std::uint32_t>(10), header.number<std::uint32_t>(14)};
  PayloadPart data{"data", header.number<std::uint32_t>(18), header.number<std::uint64_t>(22)};
  ETSTREAM_TRY(header.check_range(10, "a graph", graph.offset, graph.size, length));
  ETSTREAM_TRY(header.check_range(18, "data", data.offset, data.size, graph.offset + graph.size));

  ETSTREAM_ASSIGN(ByteSource bytes, payload.slice(graph.offset, graph.size));
  ETSTREAM_ASSIGN(const Schema* schema, embedded_schema<vulkan_graph::VkGraphBinarySchema>());
  ETSTREAM_ASSIGN(FlatbufferView view, FlatbufferView::open(*schema, std::move(bytes), name));
  ETSTREAM_TRY(verify_flatbuffer(view));
  static const vulkan_graph::Fields kKnown(*schema);
  return std::optional(VulkanPayload{std::move(view), kKnown, std::move(graph), std::move(data)});
}

/// Reads where the bytes of a constant or of a shader are. Those of size 0 may be anywhere.
Result<VulkanBytes> read_bytes(const VulkanPayload& payload, const TableReader& range) {
  const auto& fields = payload.fields.vk_bytes;
  VulkanBytes out;
  ETSTREAM_ASSIGN(auto key, range.string(fields.named_key));
  ETSTREAM_ASSIGN(const auto offset, range.scalar<std::uint64_t>(fields.offset));
  ETSTREAM_ASSIGN(out.size, range.scalar<std::uint64_t>(fields.length));
  if (key && !key->empty()) {
    ETSTREAM_ASSIGN(const auto characters, range.vector(fields.named_key));
    out.key = *std::move(key);
    out.position = payload.graph_part.offset + characters->elements();
    return out;
  }
  // All ones stand for no data.
  if (offset == std::numeric_limits<std::uint64_t>::max()) return VulkanBytes();
  if (!range_fits(offset, out.size, payload.data.size)) {
    return range.corrupt(text("a constant or a shader in {}", counted(payload.data.size, "byte")),
                         text("{} bytes from {} on", out.size, offset));
  }
  out.position = payload.data.offset + offset;
  return out;
}

/// Returns the type of a datatype, by its number.
std::optional<ScalarType> type_of(std::int8_t datatype) {
  constexpr ScalarType kTypes[] = {ScalarType::kBool,    ScalarType::kUInt8,   ScalarType::kInt8,
                                   ScalarType::kInt32,   ScalarType::kFloat16, ScalarType::kFloat32,
                                   ScalarType::kFloat64, ScalarType::kInt64};
  if (datatype < 0 || std::cmp_greater_equal(datatype, std::size(kTypes))) return std::nullopt;
  return kTypes[datatype];
}

}  // namespace

Result<std::optional<BackendPayload>> read_vulkan_payload(const ByteSource& payload,
                                                          const std::string& name) {
  ETSTREAM_ASSIGN(const auto opened, open_vulkan(payload, name));
  if (!opened) return std::optional<BackendPayload>();
  ETSTREAM_ASSIGN(const TableReader root, TableReader::root(opened->graph));
  ETSTREAM_ASSIGN(const TableList constants, root.tables(opened->fields.vk_graph.constants));
  ETSTREAM_ASSIGN(const TableList shaders, root.tables(opened->fields.vk_graph.shaders));
  BackendPayload out{
      "a graph (VH00)",
      {opened->graph_part, opened->data},
      {{"constants", std::int64_t{constants.size()}}, {"shaders", std::int64_t{shaders.size()}}}};
  const auto read = [&](const TableReader& range) -> Result<void> {
    ETSTREAM_ASSIGN(VulkanBytes bytes, read_bytes(*opened, range));
    if (!bytes.key.empty()) out.requests.push_back({std::move(bytes.key), bytes.size});
    return {};
  };
  ETSTREAM_TRY(for_each(constants, read));
  ETSTREAM_TRY(for_each(shaders, read));
  return std::optional(std::move(out));
}

Result<std::vector<PayloadConstant>> read_vulkan_constants(const ByteSource& payload,
                                                           const std::string& name) {
  ETSTREAM_ASSIGN(const auto opened, open_vulkan(payload, name));
  if (!opened) return unexpected(ErrorCode::kCorrupt, {name, 4}, "VH00, found another beginning");
  const auto& fields = opened->fields;
  ETSTREAM_ASSIGN(const TableReader root, TableReader::root(opened->graph));
  std::vector<PayloadConstant> out;
  ETSTREAM_TRY(for_each(
      root.tables(fields.vk_graph.constants), [&](const TableReader& range, std::uint32_t i) -> Result<void> {
        ETSTREAM_ASSIGN(VulkanBytes bytes, read_bytes(*opened, range));
        out.push_back({std::move(bytes.key), bytes.position, bytes.size, text("constant {}", i)});
        return {};
      }));
  ETSTREAM_TRY(for_each(root.tables(fields.vk_graph.values), [&](const TableReader& value) -> Result<void> {
    ETSTREAM_ASSIGN(const auto held, value.member(fields.vk_value.value));
    if (!held || held->type() != fields.vk_tensor.index()) return {};
    ETSTREAM_ASSIGN(const auto number, held->scalar<std::int32_t>(fields.vk_tensor.constant_id));
    if (number < 0 || std::cmp_greater_equal(number, out.size())) return {};
    ETSTREAM_ASSIGN(const auto datatype, held->scalar<std::int8_t>(fields.vk_tensor.datatype));
    ETSTREAM_ASSIGN(const auto dims, held->values<std::uint32_t>(fields.vk_tensor.dims));
    PayloadConstant& constant = out[static_cast<std::size_t>(number)];
    if (const auto type = type_of(datatype)) constant.layout = layout_of_size(*type, dims, constant.size);
    return {};
  }));
  return out;
}

}  // namespace etstream
