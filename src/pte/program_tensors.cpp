// SPDX-License-Identifier: BSD-3-Clause
#include "pte/program_tensors.h"

#include <cstdlib>

#include "base/try.h"

namespace etstream {
namespace {

Result<ProgramTensor> read_tensor(const TableReader& table, std::uint32_t method) {
  ProgramTensor out;
  out.position = table.position();
  out.method = method;
  ETSTREAM_ASSIGN(out.buffer, table.scalar<std::uint32_t>("data_buffer_idx"));
  ETSTREAM_ASSIGN(out.is_planned, table.has("allocation_info"));
  ETSTREAM_ASSIGN(const auto extra, table.child("extra_tensor_info"));
  if (!extra) return out;
  ETSTREAM_ASSIGN(const auto location, extra->scalar<std::int8_t>("location"));
  ETSTREAM_ASSIGN(auto name, extra->string("fully_qualified_name"));
  out.is_external = location == 1;  // TensorDataLocation.EXTERNAL
  out.name = std::move(name).value_or("");
  out.extra_position = extra->position();
  for (const char* other : {"mutable_data_segments_idx", "device_type", "device_index"}) {
    ETSTREAM_ASSIGN(const bool has_it, extra->has(other));
    out.has_other_info |= has_it;
  }
  return out;
}

}  // namespace

Result<std::vector<ProgramTensor>> read_tensors(const TableReader& root) {
  std::vector<ProgramTensor> out;
  ETSTREAM_ASSIGN(const TableList plans, root.tables("execution_plan"));
  for (std::uint32_t i = 0; i < plans.size(); ++i) {
    ETSTREAM_ASSIGN(const TableReader plan, plans.at(i));
    ETSTREAM_ASSIGN(const TableList values, plan.tables("values"));
    for (std::uint32_t j = 0; j < values.size(); ++j) {
      ETSTREAM_ASSIGN(const TableReader value, values.at(j));
      ETSTREAM_ASSIGN(const auto held, value.member("val"));
      if (!held || held->type_name() != "Tensor") continue;
      ETSTREAM_ASSIGN(ProgramTensor tensor, read_tensor(*held, i));
      out.push_back(std::move(tensor));
    }
  }
  return out;
}

Result<TableReader> table_of(const FlatbufferView& view, const ProgramTensor& tensor) {
  const auto type = view.schema().find_table("Tensor");
  if (!type) std::abort();
  ETSTREAM_ASSIGN(const TableView table, view.table(tensor.position));
  return TableReader(view, table, *type);
}

}  // namespace etstream
