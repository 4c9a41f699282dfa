// SPDX-License-Identifier: BSD-3-Clause
#include "ptn/native_graph.h"

#include <optional>
#include <utility>

#include "base/try.h"
#include "flatbuffer/embedded_schema.h"
#include "flatbuffer/flatbuffer_verifier.h"
#include "flatbuffer/flatbuffer_walk.h"
#include "flatbuffer/table_reader.h"
#include "native_graph_bfbs_generated.h"

namespace etstream {
namespace {

/// Collects keys, wherever tables are that have them.
class KeyCollector : public FlatbufferVisitor {
 public:
  explicit KeyCollector(const FlatbufferView& view) : view_(view) {}

  Result<void> begin_table(const TableView& table, const TableType& type) {
    if (type.name != "NamedTensorRef" && type.name != "AffineGroup") return {};
    const auto index = static_cast<std::size_t>(&type - view_.schema().tables().data());
    const TableReader reader(view_, table, index);
    if (type.name == "AffineGroup") {
      ETSTREAM_TRY(add(reader, "scale_data_key", false));
      return add(reader, "zero_point_data_key", false);
    }
    ETSTREAM_ASSIGN(const auto is_mutable, reader.scalar<bool>("mutated"));
    return add(reader, "data_key", is_mutable);
  }

  NativeGraph take() && { return std::move(graph_); }

 private:
  Result<void> add(const TableReader& reader, const char* field, bool is_mutable) {
    ETSTREAM_ASSIGN(auto key, reader.string(field));
    if (!key || key->empty()) return {};
    if (is_mutable) graph_.mutable_keys.insert(*key);
    graph_.data_keys.insert(std::move(*key));
    return {};
  }

  const FlatbufferView& view_;
  NativeGraph graph_;
};

}  // namespace

Result<NativeGraph> read_native_graph(const ByteSource& graph, const std::string& name) {
  ETSTREAM_ASSIGN(const Schema* schema, embedded_schema<native_graph::ProgramBinarySchema>());
  ETSTREAM_ASSIGN(const FlatbufferView view, FlatbufferView::open(*schema, graph, name));
  ETSTREAM_TRY(verify_flatbuffer(view));
  KeyCollector collector(view);
  ETSTREAM_TRY(walk_flatbuffer(view, collector));
  return std::move(collector).take();
}

Result<NativeGraph> read_native_graph(const ByteSource& graph) {
  return without_exceptions([&] { return read_native_graph(graph, graph.name()); });
}

}  // namespace etstream
