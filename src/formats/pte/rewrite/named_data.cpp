// SPDX-License-Identifier: BSD-3-Clause
#include "formats/pte/rewrite/named_data.h"

#include <algorithm>
#include <optional>
#include <set>

#include "core/base/text.h"
#include "core/base/try.h"
#include "core/layout/same_bytes.h"
#include "etstream/program_metadata.h"

namespace etstream {
namespace {

/// Returns the segment of named data that has these bytes.
Result<std::optional<std::uint32_t>> segment_with(const EditableProgram& editable, const ByteSource& value) {
  for (const EditableProgram::NamedData& named : editable.named_data) {
    const ByteSource& source = editable.segments[named.segment].source;
    if (source.size() != value.size()) continue;
    ETSTREAM_ASSIGN(const bool same, same_bytes(source, value));
    if (same) return std::optional(named.segment);
  }
  return std::optional<std::uint32_t>();
}

}  // namespace

void remove_named_data(EditableProgram& editable, const std::set<std::string>& keys) {
  std::set<std::uint32_t> kept;
  std::set<std::uint32_t> gone;
  for (const EditableProgram::NamedData& named : editable.named_data) {
    (keys.contains(named.key) ? gone : kept).insert(named.segment);
  }
  if (gone.empty()) return;
  std::erase_if(editable.named_data, [&](const auto& named) { return keys.contains(named.key); });
  std::erase_if(editable.order, [&](std::uint32_t i) {
    return gone.contains(i) && !kept.contains(i) && editable.segments[i].label == kNamedDataLabel;
  });
  editable.has_same_named_data = false;
}

void add_named_data(EditableProgram& editable, const std::string& key, std::uint32_t segment) {
  editable.named_data.push_back({std::nullopt, key, segment});
  editable.has_same_named_data = false;
}

void move_metadata_to_the_end(EditableProgram& editable) {
  const auto is_other = [](const EditableProgram::NamedData& named) {
    return !named.key.starts_with(kMetadataPrefix);
  };
  const auto metadata =
      std::stable_partition(editable.named_data.begin(), editable.named_data.end(), is_other);
  std::set<std::uint32_t> of_others;
  for (auto named = editable.named_data.begin(); named != metadata; ++named) of_others.insert(named->segment);
  for (auto named = metadata; named != editable.named_data.end(); ++named) {
    const std::uint32_t segment = named->segment;
    if (of_others.contains(segment) || editable.segments[segment].label != kNamedDataLabel) continue;
    std::erase(editable.order, segment);
    editable.order.push_back(segment);
  }
  editable.has_same_named_data = false;
}

Result<void> add_metadata(EditableProgram& editable, const std::map<std::string, ByteSource>& metadata) {
  for (const auto& [name, value] : metadata) {
    if (name.empty()) return Error{ErrorCode::kInvalidArgument, "metadata: expected a key, found none"};
    const std::string key = std::string(kMetadataPrefix) + name;
    remove_named_data(editable, {key});
    ETSTREAM_ASSIGN(const auto segment, segment_with(editable, value));
    add_named_data(editable, key, segment ? *segment : editable.add_segment(value, kNamedDataLabel));
  }
  return {};
}

}  // namespace etstream
