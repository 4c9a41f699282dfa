// SPDX-License-Identifier: BSD-3-Clause
#include "formats/pte/rewrite/comparable_program.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "core/base/try.h"
#include "formats/pte/rewrite/editable_program.h"
#include "formats/pte/rewrite/named_data.h"
#include "formats/pte/rewrite/program_plan.h"

namespace etstream {
namespace {

/// Sorts named data by its keys, and puts its segments behind all others in that order.
void sort_named_data(EditableProgram& editable) {
  std::ranges::stable_sort(editable.named_data, {}, &EditableProgram::NamedData::key);
  std::vector<std::uint32_t> sorted;
  std::set<std::uint32_t> seen;
  for (const EditableProgram::NamedData& named : editable.named_data) {
    if (editable.segments[named.segment].label == kNamedDataLabel && seen.insert(named.segment).second) {
      sorted.push_back(named.segment);
    }
  }
  std::erase_if(editable.order, [&](std::uint32_t segment) { return seen.contains(segment); });
  editable.order.insert(editable.order.end(), sorted.begin(), sorted.end());
  editable.has_same_named_data = false;
}

/// Removes all named data.
void remove_named_data(EditableProgram& editable) {
  std::set<std::string> keys;
  for (const EditableProgram::NamedData& named : editable.named_data) keys.insert(named.key);
  remove_named_data(editable, keys);
}

}  // namespace

Result<FilePlan> plan_comparable(const ProgramFile& program, ComparedParts parts) {
  constexpr std::uint32_t kAlignment = 16;
  const ProgramPlanOptions options{.segment_alignment = kAlignment,
                                   .constant_tensor_alignment = kAlignment,
                                   .delegate_alignment = kAlignment,
                                   .delegates = DelegateData::kInSegments,
                                   .as_of = kLatestRelease,
                                   .vtables = VtableSharing::kOfEqualSize};
  ETSTREAM_ASSIGN(EditableProgram editable, read_editable_program(program));
  ETSTREAM_ASSIGN(const ProgramStyle observed, observe_style(editable));
  if (parts == ComparedParts::kAll) {
    sort_named_data(editable);
  } else {
    remove_named_data(editable);
  }
  return lay_out(std::move(editable), observed, options);
}

}  // namespace etstream
