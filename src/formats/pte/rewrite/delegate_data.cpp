// SPDX-License-Identifier: BSD-3-Clause
#include "formats/pte/rewrite/delegate_data.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "core/base/try.h"
#include "core/layout/same_bytes.h"

namespace etstream {
namespace {

constexpr std::string_view kDelegate = "delegate ";  // how the use of segments of delegates begins

/// Returns the segments, or the entries in the flatbuffer, that delegates refer to.
std::set<std::uint32_t> used_by(const std::vector<DelegateReference>& delegates, bool in_segment) {
  std::set<std::uint32_t> out;
  for (const DelegateReference& reference : delegates) {
    if (reference.in_segment == in_segment) out.insert(reference.index);
  }
  return out;
}

/// Returns the segments of `delegates` that nothing but delegates uses.
std::set<std::uint32_t> own_segments(const EditableProgram& editable,
                                     const std::vector<DelegateReference>& delegates) {
  std::set<std::uint32_t> out = used_by(delegates, true);
  std::erase_if(out, [&](std::uint32_t i) { return !editable.segments[i].label.starts_with(kDelegate); });
  return out;
}

void leave_out(EditableProgram& editable, const std::set<std::uint32_t>& segments) {
  std::erase_if(editable.order, [&](std::uint32_t i) { return segments.contains(i); });
}

}  // namespace

const ByteSource& data_of(const EditableProgram& editable, const DelegateReference& reference) {
  return reference.in_segment ? editable.segments[reference.index].source
                              : editable.inline_delegates[reference.index].data;
}

void move_delegates_inline(EditableProgram& editable) {
  if (used_by(editable.delegates, true).empty()) return;
  leave_out(editable, own_segments(editable, editable.delegates));
  std::vector<EditableProgram::InlineData> entries;
  std::map<std::pair<bool, std::uint32_t>, std::uint32_t> numbers;  // by where the data was
  for (DelegateReference& reference : editable.delegates) {
    const auto [number, added] = numbers.try_emplace({reference.in_segment, reference.index},
                                                     static_cast<std::uint32_t>(entries.size()));
    if (added && reference.in_segment) {
      entries.push_back({std::nullopt, editable.segments[reference.index].source});
    } else if (added) {
      entries.push_back(editable.inline_delegates[reference.index]);
    }
    reference.in_segment = false;
    reference.index = number->second;
  }
  editable.inline_delegates = std::move(entries);
  editable.has_same_inline_delegates = false;
}

Result<void> move_delegates_to_segments(EditableProgram& editable) {
  const auto label_of = [&](std::uint32_t i) -> std::string_view { return editable.segments[i].label; };
  auto insert_at = std::ranges::find(editable.order, kNamedDataLabel, label_of) - editable.order.begin();
  std::vector<EditableProgram::InlineData> entries;
  Deduplicator data;
  std::vector<std::uint32_t> segments;  // of the data, by its number
  for (DelegateReference& reference : editable.delegates) {
    if (reference.in_segment) continue;
    const EditableProgram::InlineData& entry = editable.inline_delegates[reference.index];
    if (entry.data.size() == 0) {
      reference.index = static_cast<std::uint32_t>(entries.size());
      entries.push_back(entry);
      continue;
    }
    ETSTREAM_ASSIGN(const auto number, data.add(entry.data));
    if (number.second) {
      segments.push_back(static_cast<std::uint32_t>(editable.segments.size()));
      editable.segments.push_back({entry.data, "delegate"});
      editable.order.insert(editable.order.begin() + insert_at++, segments.back());
    }
    reference.in_segment = true;
    reference.index = segments[number.first];
  }
  editable.inline_delegates = std::move(entries);
  editable.has_same_inline_delegates = false;
  return {};
}

void remove_delegate_data(EditableProgram& editable, const std::vector<DelegateReference>& gone) {
  const auto used_segments = used_by(editable.delegates, true);
  std::set<std::uint32_t> segments = own_segments(editable, gone);
  std::erase_if(segments, [&](std::uint32_t i) { return used_segments.contains(i); });
  leave_out(editable, segments);

  const auto used = used_by(editable.delegates, false);
  const auto used_before = used_by(gone, false);
  std::vector<EditableProgram::InlineData> entries;
  std::vector<std::uint32_t> numbers;
  for (std::uint32_t i = 0; i < editable.inline_delegates.size(); ++i) {
    numbers.push_back(static_cast<std::uint32_t>(entries.size()));
    if (used.contains(i) || !used_before.contains(i)) entries.push_back(editable.inline_delegates[i]);
  }
  if (entries.size() == editable.inline_delegates.size()) return;
  for (DelegateReference& reference : editable.delegates) {
    if (!reference.in_segment) reference.index = numbers[reference.index];
  }
  editable.inline_delegates = std::move(entries);
  editable.has_same_inline_delegates = false;
}

}  // namespace etstream
