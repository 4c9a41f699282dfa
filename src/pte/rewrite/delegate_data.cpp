// SPDX-License-Identifier: BSD-3-Clause
#include "pte/rewrite/delegate_data.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/try.h"
#include "layout/deduplicator.h"

namespace etstream {
namespace {

constexpr std::string_view kDelegate = "delegate ";  // how the use of segments of delegates begins

/// The segments, or the entries in the flatbuffer, that delegates refer to.
std::set<std::uint32_t> used_by(const std::vector<DelegateReference>& delegates, bool in_segment) {
  std::set<std::uint32_t> out;
  for (const DelegateReference& reference : delegates) {
    if (reference.in_segment == in_segment) out.insert(reference.index);
  }
  return out;
}

/// Those of `delegates`' segments that nothing but delegates uses.
std::set<std::uint32_t> own_segments(const ProgramDraft& draft,
                                     const std::vector<DelegateReference>& delegates) {
  std::set<std::uint32_t> out = used_by(delegates, true);
  std::erase_if(out, [&](std::uint32_t i) { return !draft.segments[i].label.starts_with(kDelegate); });
  return out;
}

void leave_out(ProgramDraft& draft, const std::set<std::uint32_t>& segments) {
  std::erase_if(draft.order, [&](std::uint32_t i) { return segments.contains(i); });
}

}  // namespace

void move_delegates_inline(ProgramDraft& draft) {
  if (used_by(draft.delegates, true).empty()) return;
  leave_out(draft, own_segments(draft, draft.delegates));
  std::vector<ProgramDraft::InlineData> entries;
  std::map<std::pair<bool, std::uint32_t>, std::uint32_t> numbers;  // by where the data was
  for (DelegateReference& reference : draft.delegates) {
    const auto [number, added] = numbers.try_emplace({reference.in_segment, reference.index},
                                                     static_cast<std::uint32_t>(entries.size()));
    if (added && reference.in_segment) {
      entries.push_back({std::nullopt, draft.segments[reference.index].source});
    } else if (added) {
      entries.push_back(draft.inline_delegates[reference.index]);
    }
    reference.in_segment = false;
    reference.index = number->second;
  }
  draft.inline_delegates = std::move(entries);
  draft.has_same_inline_delegates = false;
}

Result<void> move_delegates_to_segments(ProgramDraft& draft) {
  auto insert_at = std::find_if(draft.order.begin(), draft.order.end(),
                                [&](std::uint32_t i) { return draft.segments[i].label == "named data"; }) -
                   draft.order.begin();
  std::vector<ProgramDraft::InlineData> entries;
  Deduplicator data;
  std::vector<std::uint32_t> segments;  // of the data, by its number
  for (DelegateReference& reference : draft.delegates) {
    if (reference.in_segment) continue;
    const ProgramDraft::InlineData& entry = draft.inline_delegates[reference.index];
    if (entry.data.size() == 0) {
      reference.index = static_cast<std::uint32_t>(entries.size());
      entries.push_back(entry);
      continue;
    }
    ETSTREAM_ASSIGN(const auto number, data.add(entry.data));
    if (number.second) {
      segments.push_back(static_cast<std::uint32_t>(draft.segments.size()));
      draft.segments.push_back({entry.data, "delegate"});
      draft.order.insert(draft.order.begin() + insert_at++, segments.back());
    }
    reference.in_segment = true;
    reference.index = segments[number.first];
  }
  draft.inline_delegates = std::move(entries);
  draft.has_same_inline_delegates = false;
  return {};
}

void remove_delegate_data(ProgramDraft& draft, const std::vector<DelegateReference>& gone) {
  const auto used_segments = used_by(draft.delegates, true);
  std::set<std::uint32_t> segments = own_segments(draft, gone);
  std::erase_if(segments, [&](std::uint32_t i) { return used_segments.contains(i); });
  leave_out(draft, segments);

  const auto used = used_by(draft.delegates, false);
  const auto used_before = used_by(gone, false);
  std::vector<ProgramDraft::InlineData> entries;
  std::vector<std::uint32_t> numbers;
  for (std::uint32_t i = 0; i < draft.inline_delegates.size(); ++i) {
    numbers.push_back(static_cast<std::uint32_t>(entries.size()));
    if (used.contains(i) || !used_before.contains(i)) entries.push_back(draft.inline_delegates[i]);
  }
  if (entries.size() == draft.inline_delegates.size()) return;
  for (DelegateReference& reference : draft.delegates) {
    if (!reference.in_segment) reference.index = numbers[reference.index];
  }
  draft.inline_delegates = std::move(entries);
  draft.has_same_inline_delegates = false;
}

}  // namespace etstream
