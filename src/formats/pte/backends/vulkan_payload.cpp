// SPDX-License-Identifier: BSD-3-Clause
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "core/base/checked.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "flatbuffer/flatbuffer_verifier.h"
#include "flatbuffer/schema.h"
#include "flatbuffer/table_reader.h"
#include "formats/pte/backends/payload_header.h"
#include "formats/pte/backends/payload_readers.h"
#include "vulkan_graph_bfbs_generated.h"
#include "vulkan_graph_fields_generated.h"

namespace etstream {

Result<std::optional<BackendPayload>> read_vulkan_payload(const ByteSource& payload,
                                                          const std::string& name) {
  constexpr std::size_t kHeaderSize = 30;
  ETSTREAM_ASSIGN(const PayloadHeader header, PayloadHeader::read(payload, kHeaderSize, name));
  if (!header.has(4, "VH00")) return std::optional<BackendPayload>();
  ETSTREAM_TRY(header.check_size());
  const auto length = header.number<std::uint16_t>(8);
  if (length < kHeaderSize) {
    return unexpected(ErrorCode::kCorrupt, {name, 8}, "a length of at least {}, found {}", kHeaderSize,
                      length);
  }
  const PayloadPart graph{"graph", header.number<std::uint32_t>(10), header.number<std::uint32_t>(14)};
  const PayloadPart data{"data", header.number<std::uint32_t>(18), header.number<std::uint64_t>(22)};
  ETSTREAM_TRY(header.check_range(10, "a graph", graph.offset, graph.size, length));
  ETSTREAM_TRY(header.check_range(18, "data", data.offset, data.size, graph.offset + graph.size));

  ETSTREAM_ASSIGN(ByteSource bytes, payload.slice(graph.offset, graph.size));
  ETSTREAM_ASSIGN(const Schema* schema, embedded_schema<vulkan_graph::VkGraphBinarySchema>());
  ETSTREAM_ASSIGN(const FlatbufferView view, FlatbufferView::open(*schema, std::move(bytes), name));
  ETSTREAM_TRY(verify_flatbuffer(view));
  ETSTREAM_ASSIGN(const TableReader root, TableReader::root(view));
  static const vulkan_graph::Fields kKnown(*schema);
  ETSTREAM_ASSIGN(const TableList constants, root.tables(kKnown.vk_graph.constants));
  ETSTREAM_ASSIGN(const TableList shaders, root.tables(kKnown.vk_graph.shaders));
  BackendPayload out{
      "a graph (VH00)",
      {graph, data},
      {{"constants", std::int64_t{constants.size()}}, {"shaders", std::int64_t{shaders.size()}}}};
  const auto read = [&](const TableReader& range) -> Result<void> {
    ETSTREAM_ASSIGN(auto key, range.string(kKnown.vk_bytes.named_key));
    ETSTREAM_ASSIGN(const auto offset, range.scalar<std::uint64_t>(kKnown.vk_bytes.offset));
    ETSTREAM_ASSIGN(const auto size, range.scalar<std::uint64_t>(kKnown.vk_bytes.length));
    if (key && !key->empty()) {
      out.requests.push_back({std::move(*key), size});
    } else if (offset != std::numeric_limits<std::uint64_t>::max() && !range_fits(offset, size, data.size)) {
      return range.corrupt(text("a constant or a shader in {}", counted(data.size, "byte")),
                           text("{} bytes from {} on", size, offset));
    }
    return {};
  };
  ETSTREAM_TRY(for_each(constants, read));
  ETSTREAM_TRY(for_each(shaders, read));
  return std::optional(std::move(out));
}

}  // namespace etstream
