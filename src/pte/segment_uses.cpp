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

template <class T>
Result<void> note_listed(const pte::List<T>& tables, std::string_view use,
                         std::vector<SegmentInfo>& segments) {
  for (std::uint32_t i = 0; i < tables.size(); ++i) {
    ETSTREAM_ASSIGN(const T table, tables.at(i));
    ETSTREAM_ASSIGN(const std::uint32_t index, table.segment());
    note_use(segments, index, use);
  }
  return {};
}

}  // namespace

Result<void> note_uses(const pte::Program& program, std::vector<SegmentInfo>& segments) {
  ETSTREAM_ASSIGN(const auto constants, program.constants());
  if (constants) {
    ETSTREAM_ASSIGN(const auto offsets, constants->offsets());
    ETSTREAM_ASSIGN(const std::uint32_t index, constants->segment());
    // Without offsets the table is there for form's sake, and what it names is another's.
    if (offsets.size() > 0) note_use(segments, index, "constants");
  }
  ETSTREAM_ASSIGN(const auto mutable_data, program.mutable_data());
  ETSTREAM_TRY(note_listed(mutable_data, "mutable data", segments));
  ETSTREAM_ASSIGN(const auto named_data, program.named_data());
  ETSTREAM_TRY(note_listed(named_data, "named data", segments));
  ETSTREAM_ASSIGN(const auto delegates, read_delegate_references(program));
  for (const DelegateReference& reference : delegates) {
    if (reference.in_segment) note_use(segments, reference.index, text("delegate {}", reference.backend));
  }
  return {};
}

}  // namespace etstream
