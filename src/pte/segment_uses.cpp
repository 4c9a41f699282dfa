// SPDX-License-Identifier: BSD-3-Clause
#include "pte/segment_uses.h"

#include <string_view>
#include <utility>

#include "base/text.h"
#include "base/try.h"
#include "pte/delegate_references.h"

namespace etstream {
namespace {

/// Says of the segment at `index` what it is used for; the first use stays.
void note_use(std::vector<SegmentInfo>& segments, std::uint64_t index, std::string_view use) {
  if (index < segments.size() && segments[index].use.empty()) segments[index].use = use;
}

Result<void> note_delegates(const TableReader& root, std::vector<SegmentInfo>& segments) {
  ETSTREAM_ASSIGN(const auto references, read_delegate_references(root));
  for (const DelegateReference& reference : references) {
    if (reference.in_segment) note_use(segments, reference.index, text("delegate ", reference.backend));
  }
  return {};
}

Result<void> note_data(const TableReader& root, std::vector<SegmentInfo>& segments) {
  ETSTREAM_ASSIGN(const auto constants, root.child("constant_segment"));
  if (constants) {
    ETSTREAM_ASSIGN(const auto offsets, constants->vector("offsets"));
    ETSTREAM_ASSIGN(const auto index, constants->scalar<std::uint32_t>("segment_index"));
    // Without offsets the table is there for form's sake, and what it names is another's.
    if (offsets && offsets->count > 0) note_use(segments, index, "constants");
  }
  for (const auto& [list, use] :
       {std::pair{"mutable_data_segments", "mutable data"}, std::pair{"named_data", "named data"}}) {
    ETSTREAM_ASSIGN(const TableList tables, root.tables(list));
    for (std::uint32_t i = 0; i < tables.size(); ++i) {
      ETSTREAM_ASSIGN(const TableReader table, tables.at(i));
      ETSTREAM_ASSIGN(const auto index, table.scalar<std::uint32_t>("segment_index"));
      note_use(segments, index, use);
    }
  }
  return {};
}

}  // namespace

Result<void> note_uses(const TableReader& root, std::vector<SegmentInfo>& segments) {
  ETSTREAM_TRY(note_data(root, segments));
  return note_delegates(root, segments);
}

}  // namespace etstream
