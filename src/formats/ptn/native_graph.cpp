// SPDX-License-Identifier: BSD-3-Clause
#include <utility>

#include "core/base/try.h"
#include "flatbuffer/flatbuffer_verifier.h"
#include "flatbuffer/flatbuffer_walk.h"
#include "flatbuffer/schema.h"
#include "flatbuffer/table_reader.h"
#include "formats/ptn/package_members.h"
#include "native_graph_bfbs_generated.h"
#include "native_graph_fields_generated.h"

namespace etstream {
namespace {

/// Collects keys, wherever tables are that have them.
class KeyCollector : public FlatbufferVisitor {
 public:
  KeyCollector(const FlatbufferView& view, const native_graph::Fields& known) : view_(view), known_(known) {}

  Result<void> begin_table(const TableView& table, const TableType& type) {
    const auto index = static_cast<std::size_t>(&type - view_.schema().tables().data());
    const TableReader reader(view_, table, index);
    if (index == known_.affine_group.index()) {
      ETSTREAM_TRY(add(reader, known_.affine_group.scale_data_key, false));
      return add(reader, known_.affine_group.zero_point_data_key, false);
    }
    if (index != known_.named_tensor_ref.index()) return {};
    ETSTREAM_ASSIGN(const auto is_mutable, reader.scalar<bool>(known_.named_tensor_ref.mutated));
    return add(reader, known_.named_tensor_ref.data_key, is_mutable);
  }

  NativeGraph take() && { return std::move(graph_); }

 private:
  Result<void> add(const TableReader& reader, const BoundField& field, bool is_mutable) {
    ETSTREAM_ASSIGN(auto key, reader.string(field));
    if (!key || key->empty()) return {};
    if (is_mutable) graph_.mutable_keys.insert(*key);
    graph_.data_keys.insert(std::move(*key));
    return {};
  }

  const FlatbufferView& view_;
  const native_graph::Fields& known_;
  NativeGraph graph_;
};

}  // namespace

Result<NativeGraph> read_native_graph(const ByteSource& graph, const std::string& name) {
  ETSTREAM_ASSIGN(const Schema* schema, embedded_schema<native_graph::ProgramBinarySchema>());
  ETSTREAM_ASSIGN(const FlatbufferView view, FlatbufferView::open(*schema, graph, name));
  ETSTREAM_TRY(verify_flatbuffer(view));
  static const native_graph::Fields kKnown(*schema);
  KeyCollector collector(view, kKnown);
  ETSTREAM_TRY(walk_flatbuffer(view, collector));
  return std::move(collector).take();
}

Result<NativeGraph> read_native_graph(const ByteSource& graph) {
  return without_exceptions([&] { return read_native_graph(graph, graph.name()); });
}

}  // namespace etstream
