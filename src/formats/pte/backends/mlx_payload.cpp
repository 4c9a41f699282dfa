// SPDX-License-Identifier: BSD-3-Clause
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "core/base/text.h"
#include "core/base/try.h"
#include "flatbuffer/flatbuffer_verifier.h"
#include "flatbuffer/schema.h"
#include "flatbuffer/table_reader.h"
#include "formats/pte/backends/payload_header.h"
#include "formats/pte/backends/payload_readers.h"
#include "mlx_graph_bfbs_generated.h"
#include "mlx_graph_fields_generated.h"

namespace etstream {
namespace {

/// Returns the names of tensors by their numbers. Of several names the last one counts, as in ExecuTorch.
Result<std::map<std::uint32_t, std::string>> names_of_tensors(const TableReader& root,
                                                              const mlx_graph::Fields& known) {
  constexpr std::int8_t kTensorSlot = 0;
  std::map<std::uint32_t, std::string> out;
  ETSTREAM_TRY(
      for_each(root.tables(known.mlx_graph.named_slots), [&](const TableReader& named) -> Result<void> {
        ETSTREAM_ASSIGN(auto name, named.string(known.named_slot.name));
        ETSTREAM_ASSIGN(const auto slot, named.child(known.named_slot.slot));
        if (!name || !slot) return {};  // not in a graph that was verified
        ETSTREAM_ASSIGN(const auto type, slot->scalar<std::int8_t>(known.slot_variant.slot_type));
        ETSTREAM_ASSIGN(const auto number, slot->scalar<std::uint32_t>(known.slot_variant.idx));
        if (type == kTensorSlot) out[number] = std::move(*name);
        return {};
      }));
  return out;
}

}  // namespace

Result<std::optional<BackendPayload>> read_mlx_payload(const ByteSource& payload, const std::string& name) {
  constexpr std::size_t kHeaderSize = 24;
  ETSTREAM_ASSIGN(const PayloadHeader header, PayloadHeader::read(payload, kHeaderSize, name));
  if (!header.has(4, "MLX0")) return std::optional<BackendPayload>();
  ETSTREAM_TRY(header.check_size());
  const PayloadPart data{"data", header.number<std::uint64_t>(8), header.number<std::uint64_t>(16)};
  ETSTREAM_TRY(header.check_range(8, "data", data.offset, data.size, kHeaderSize + 1));
  const PayloadPart graph{"graph", kHeaderSize, data.offset - kHeaderSize};

  ETSTREAM_ASSIGN(ByteSource bytes, payload.slice(graph.offset, graph.size));
  ETSTREAM_ASSIGN(const Schema* schema, embedded_schema<mlx_graph::MLXGraphBinarySchema>());
  ETSTREAM_ASSIGN(const FlatbufferView view, FlatbufferView::open(*schema, std::move(bytes), name));
  ETSTREAM_TRY(verify_flatbuffer(view));
  ETSTREAM_ASSIGN(const TableReader root, TableReader::root(view));
  static const mlx_graph::Fields kKnown(*schema);
  BackendPayload out{"a graph (MLX0)", {graph, data}};
  ETSTREAM_ASSIGN(auto version, root.string(kKnown.mlx_graph.version));
  if (version) out.facts.push_back({"version", std::move(*version)});
  const auto add_count = [&](const char* what, const BoundField& field) -> Result<std::uint32_t> {
    ETSTREAM_ASSIGN(const auto count, root.scalar<std::uint32_t>(field));
    out.facts.push_back({what, std::int64_t{count}});
    return count;
  };
  ETSTREAM_ASSIGN(const std::uint32_t constants,
                  add_count("constants", kKnown.mlx_graph.num_constant_tensors));
  ETSTREAM_TRY(add_count("inputs", kKnown.mlx_graph.num_input_tensors));
  ETSTREAM_TRY(add_count("outputs", kKnown.mlx_graph.num_output_tensors));

  ETSTREAM_ASSIGN(auto names, names_of_tensors(root, kKnown));
  for (std::uint32_t i = 0; i < constants; ++i) {
    const auto found = names.find(i);
    if (found == names.end()) return root.corrupt(text("a name of constant {} of {}", i, constants), "none");
    out.requests.push_back({std::move(found->second), std::nullopt});
  }
  return std::optional(std::move(out));
}

}  // namespace etstream
