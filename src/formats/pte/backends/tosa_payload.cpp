// SPDX-License-Identifier: BSD-3-Clause
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "core/base/checked.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/file_budget.h"
#include "flatbuffer/flatbuffer_verifier.h"
#include "flatbuffer/schema.h"
#include "flatbuffer/table_reader.h"
#include "formats/pte/backends/payload_header.h"
#include "formats/pte/backends/payload_readers.h"
#include "tosa_graph_bfbs_generated.h"
#include "tosa_graph_fields_generated.h"

namespace etstream {
namespace {

/// Collects the constants of a graph, which are its parts, and counts the rest.
class TosaReader {
 public:
  TosaReader(const FlatbufferView& view, const tosa_graph::Fields& known)
      : view_(view), known_(known), budget_(view.name(), view.file().size()) {}

  Result<BackendPayload> run() {
    ETSTREAM_ASSIGN(const TableReader root, TableReader::root(view_));
    ETSTREAM_TRY(read_version(root));
    ETSTREAM_TRY(for_each(root.tables(known_.tosa_graph.regions), [&](const TableReader& region) {
      return for_each(region.tables(known_.tosa_region.blocks),
                      [&](const TableReader& block) { return read_block(block); });
    }));
    out_.facts.push_back({"operators", operators_});
    out_.facts.push_back({"tensors", tensors_});
    out_.facts.push_back({"constants", static_cast<std::int64_t>(out_.parts.size())});
    return std::move(out_);
  }

 private:
  Result<void> read_version(const TableReader& root) {
    ETSTREAM_ASSIGN(const auto version, root.child(known_.tosa_graph.version));
    if (!version) return {};  // not in a graph that was verified
    ETSTREAM_ASSIGN(const auto major, version->scalar<std::int32_t>(known_.version._major));
    ETSTREAM_ASSIGN(const auto minor, version->scalar<std::int32_t>(known_.version._minor));
    ETSTREAM_ASSIGN(const auto patch, version->scalar<std::int32_t>(known_.version._patch));
    ETSTREAM_ASSIGN(const auto is_draft, version->scalar<bool>(known_.version._draft));
    out_.facts.push_back({"version", text("{}.{}.{}{}", major, minor, patch, is_draft ? " draft" : "")});
    return {};
  }

  Result<void> read_block(const TableReader& block) {
    ETSTREAM_ASSIGN(const TableList operators, block.tables(known_.tosa_basic_block.operators));
    ETSTREAM_ASSIGN(const TableList tensors, block.tables(known_.tosa_basic_block.tensors));
    operators_ += operators.size();
    tensors_ += tensors.size();
    return for_each(tensors, [&](const TableReader& tensor) { return read_tensor(tensor); });
  }

  Result<void> read_tensor(const TableReader& tensor) {
    PayloadPart part;
    ETSTREAM_ASSIGN(const auto bytes, tensor.bytes(known_.tosa_tensor.data));
    ETSTREAM_ASSIGN(part.offset, tensor.scalar<std::uint64_t>(known_.tosa_tensor.offset));
    ETSTREAM_ASSIGN(part.size, tensor.scalar<std::uint64_t>(known_.tosa_tensor.size));
    const bool is_behind = part.offset > 1;
    if (!is_behind) {
      if (!bytes || bytes->size() == 0) return {};
      part.offset = bytes->offset_in(view_.file()).value_or(0);
      part.size = bytes->size();
    } else if (!range_fits(part.offset, part.size, view_.file().size())) {
      return tensor.corrupt(text("a constant inside {}", counted(view_.file().size(), "byte")),
                            text("{} bytes from {} on", part.size, part.offset));
    }
    ETSTREAM_ASSIGN(auto name, tensor.string(known_.tosa_tensor.name));
    part.name = std::move(name).value_or("");
    ETSTREAM_TRY(budget_.reach(tensor.position(), part.name.size()));
    out_.parts.push_back(std::move(part));
    return {};
  }

  const FlatbufferView& view_;
  const tosa_graph::Fields& known_;
  FileBudget budget_;
  std::int64_t operators_ = 0;
  std::int64_t tensors_ = 0;
  BackendPayload out_{"a graph (TOSA)"};
};

}  // namespace

Result<std::optional<BackendPayload>> read_tosa_payload(const ByteSource& payload, const std::string& name) {
  ETSTREAM_ASSIGN(const PayloadHeader header, PayloadHeader::read(payload, 8, name));
  if (!header.has(4, "TOSA")) return std::optional<BackendPayload>();
  ETSTREAM_ASSIGN(const Schema* schema, embedded_schema<tosa_graph::TosaGraphBinarySchema>());
  ETSTREAM_ASSIGN(const FlatbufferView view, FlatbufferView::open(*schema, payload, name));
  ETSTREAM_TRY(verify_flatbuffer(view));
  static const tosa_graph::Fields kKnown(*schema);
  ETSTREAM_ASSIGN(BackendPayload out, TosaReader(view, kKnown).run());
  return std::optional(std::move(out));
}

}  // namespace etstream
