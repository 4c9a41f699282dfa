// SPDX-License-Identifier: BSD-3-Clause
#include "formats/pte/backends/xnnpack_payload.h"

#include <array>
#include <cstring>
#include <span>

#include "core/base/checked.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "flatbuffer/flatbuffer_verifier.h"
#include "flatbuffer/schema.h"
#include "flatbuffer/table_reader.h"
#include "formats/pte/backends/payload_readers.h"
#include "xnnpack_graph_bfbs_generated.h"

namespace etstream {
namespace {

/// The header at offset 4, where a flatbuffer has its identifier: magic, u16 length, u32 offset and u32 size
/// of the graph, u32 offset and u64 size of the constant data behind it
/// (backends/xnnpack/runtime/XNNHeader.cpp of ExecuTorch 1.5.1).
constexpr std::uint64_t kMagicPosition = 4;
constexpr std::uint64_t kHeaderEnd = 30;
constexpr std::uint64_t kGraphPosition = 10;
constexpr std::uint64_t kConstantsPosition = 18;

struct Range {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};

struct Header {
  Range graph;
  Range constants;
};

/// Reads the places of the graph and the constants from the header of a payload. Error: kCorrupt.
Result<Header> read_header(const ByteSource& payload, std::span<const std::byte> header,
                           const std::string& name) {
  const auto number = [&]<class T>(std::uint64_t position, T value) {
    std::memcpy(&value, header.data() + position, sizeof(value));
    return std::uint64_t{value};
  };
  const Range graph{number(kGraphPosition, std::uint32_t{}), number(kGraphPosition + 4, std::uint32_t{})};
  const Range constants{number(kConstantsPosition, std::uint32_t{}),
                        number(kConstantsPosition + 4, std::uint64_t{})};
  const auto corrupt = [&](std::uint64_t position, std::string_view what, const Range& found) {
    return unexpected(ErrorCode::kCorrupt, {name, position}, "{} inside {}, found {} bytes from {} on", what,
                      counted(payload.size(), "byte"), found.size, found.offset);
  };
  if (!range_fits(graph.offset, graph.size, payload.size())) return corrupt(kGraphPosition, "a graph", graph);
  if (!range_fits(constants.offset, constants.size, payload.size()) ||
      constants.offset < graph.offset + graph.size) {
    return corrupt(kConstantsPosition, "constants behind the graph and", constants);
  }
  return Header{graph, constants};
}

/// Refuses other versions of the graph. Version XN00 lacks some fields, none of which is read.
Result<void> check_identifier(const ByteSource& graph, const std::string& name) {
  std::array<char, 4> identifier{};
  std::string_view found;
  if (range_fits(kMagicPosition, identifier.size(), graph.size())) {
    ETSTREAM_TRY(graph.read_at(kMagicPosition, std::as_writable_bytes(std::span(identifier))));
    found = std::string_view(identifier.data(), identifier.size());
  }
  if (found == "XN00" || found == "XN01") return {};
  return unexpected(ErrorCode::kCorrupt, {name, kMagicPosition},
                    "the identifier of XNNPACK's graph (XN00, XN01), found {}", quote(found));
}

/// Returns the constants outside of the payload that ExecuTorch 1.5.1 asks for when it loads it, in that
/// order, with their sizes.
Result<std::vector<NamedDataRequest>> constants_in(const XnnpackPayload& payload) {
  const xnnpack::Fields& fields = payload.fields;
  ETSTREAM_ASSIGN(const TableReader root, TableReader::root(payload.graph));
  ETSTREAM_ASSIGN(const TableList listed, root.tables(fields.xnn_graph.constant_data));
  std::vector<NamedDataRequest> out;
  for (std::uint32_t i = 1; i < listed.size(); ++i) {
    ETSTREAM_ASSIGN(const TableReader constant, listed.at(i));
    ETSTREAM_ASSIGN(auto key, constant.string(fields.constant_data_offset.named_key));
    if (!key) continue;
    ETSTREAM_ASSIGN(const auto size, constant.scalar<std::uint64_t>(fields.constant_data_offset.size));
    out.push_back({std::move(*key), size});
  }
  return out;
}

}  // namespace

Result<XnnpackPayload> open_xnnpack(const ByteSource& payload, const std::string& name) {
  ETSTREAM_ASSIGN(const Schema* schema, embedded_schema<xnnpack_graph::XNNGraphBinarySchema>());
  std::array<std::byte, kHeaderEnd> header{};
  if (payload.size() < header.size()) {
    return unexpected(ErrorCode::kCorrupt, {name, 0}, "XNNPACK's header of {} bytes, found {}", header.size(),
                      payload.size());
  }
  ETSTREAM_TRY(payload.read_at(0, header));
  constexpr std::string_view kMagic = "XH00";
  const bool has_header = std::memcmp(header.data() + kMagicPosition, kMagic.data(), kMagic.size()) == 0;
  ByteSource graph = payload;
  Range constants;
  std::uint64_t graph_offset = 0;
  if (has_header) {
    ETSTREAM_ASSIGN(const Header places, read_header(payload, header, name));
    ETSTREAM_ASSIGN(graph, payload.slice(places.graph.offset, places.graph.size));
    constants = places.constants;
    graph_offset = places.graph.offset;
  }
  ETSTREAM_TRY(check_identifier(graph, name));
  ETSTREAM_ASSIGN(FlatbufferView view, FlatbufferView::open(*schema, std::move(graph), name));
  ETSTREAM_TRY(verify_flatbuffer(view));
  static const xnnpack::Fields kFields(*schema);
  return XnnpackPayload{std::move(view), kFields, has_header, constants.offset, constants.size, graph_offset};
}

Result<std::optional<BackendPayload>> read_xnnpack_payload(const ByteSource& payload,
                                                           const std::string& name) {
  ETSTREAM_ASSIGN(const XnnpackPayload opened, open_xnnpack(payload, name));
  BackendPayload out{opened.has_header ? "a graph (XH00)" : "a graph"};
  out.parts.push_back({"graph", opened.graph_offset, opened.graph.file().size()});
  ETSTREAM_ASSIGN(const TableReader root, TableReader::root(opened.graph));
  ETSTREAM_ASSIGN(const TableList nodes, root.tables(opened.fields.xnn_graph.xnodes));
  out.facts.push_back({"nodes", std::int64_t{nodes.size()}});
  if (opened.has_header) {
    out.parts.push_back({"constants", opened.constants_offset, opened.constants_size});
    ETSTREAM_ASSIGN(out.requests, constants_in(opened));
  }
  return std::optional(std::move(out));
}

}  // namespace etstream
