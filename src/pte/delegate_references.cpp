// SPDX-License-Identifier: BSD-3-Clause
#include "pte/delegate_references.h"

#include <cstdlib>

#include "base/try.h"

namespace etstream {

Result<std::vector<DelegateReference>> read_delegate_references(const TableReader& root) {
  constexpr std::int8_t kInSegment = 1;  // DataLocation.SEGMENT
  std::vector<DelegateReference> out;
  ETSTREAM_ASSIGN(const TableList plans, root.tables("execution_plan"));
  for (std::uint32_t i = 0; i < plans.size(); ++i) {
    ETSTREAM_ASSIGN(const TableReader plan, plans.at(i));
    ETSTREAM_ASSIGN(const TableList delegates, plan.tables("delegates"));
    for (std::uint32_t j = 0; j < delegates.size(); ++j) {
      ETSTREAM_ASSIGN(const TableReader delegate, delegates.at(j));
      ETSTREAM_ASSIGN(auto id, delegate.string("id"));
      ETSTREAM_ASSIGN(const auto processed, delegate.child("processed"));
      if (!processed) continue;
      ETSTREAM_ASSIGN(const auto location, processed->scalar<std::int8_t>("location"));
      ETSTREAM_ASSIGN(const auto index, processed->scalar<std::uint32_t>("index"));
      out.push_back({processed->position(), i, j, std::move(id).value_or(""), location == kInSegment, index});
    }
  }
  return out;
}

Result<TableReader> table_of(const FlatbufferView& view, const DelegateReference& reference) {
  const auto type = view.schema().find_table("BackendDelegateDataReference");
  if (!type) std::abort();
  ETSTREAM_ASSIGN(const TableView table, view.table(reference.position));
  return TableReader(view, table, *type);
}

}  // namespace etstream
