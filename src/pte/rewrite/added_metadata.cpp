// SPDX-License-Identifier: BSD-3-Clause
#include "pte/rewrite/added_metadata.h"

#include <algorithm>
#include <optional>

#include "base/text.h"
#include "base/try.h"
#include "etstream/program_metadata.h"
#include "layout/same_bytes.h"

namespace etstream {
namespace {

/// The segment of named data that has these bytes.
Result<std::optional<std::uint32_t>> segment_with(const EditableProgram& editable, const ByteSource& value) {
  for (const EditableProgram::NamedData& named : editable.named_data) {
    const ByteSource& source = editable.segments[named.segment].source;
    if (source.size() != value.size()) continue;
    ETSTREAM_ASSIGN(const bool same, same_bytes(source, value));
    if (same) return std::optional(named.segment);
  }
  return std::optional<std::uint32_t>();
}

/// Leaves out what has the key, and its segment where nothing else does.
void remove(EditableProgram& editable, const std::string& key) {
  const auto with_key = [&](const EditableProgram::NamedData& named) { return named.key == key; };
  const auto found = std::find_if(editable.named_data.begin(), editable.named_data.end(), with_key);
  if (found == editable.named_data.end()) return;
  const std::uint32_t segment = found->segment;
  editable.named_data.erase(found);
  const bool is_shared = std::any_of(editable.named_data.begin(), editable.named_data.end(),
                                     [&](const auto& named) { return named.segment == segment; });
  if (!is_shared && editable.segments[segment].label == kNamedDataLabel) std::erase(editable.order, segment);
}

}  // namespace

Result<void> add_metadata(EditableProgram& editable, const std::map<std::string, ByteSource>& metadata) {
  for (const auto& [name, value] : metadata) {
    if (name.empty()) return Error{ErrorCode::kInvalidArgument, "metadata: expected a key, found none"};
    const std::string key = std::string(kMetadataPrefix) + name;
    remove(editable, key);
    ETSTREAM_ASSIGN(std::optional<std::uint32_t> segment, segment_with(editable, value));
    if (!segment) {
      segment = static_cast<std::uint32_t>(editable.segments.size());
      editable.segments.push_back({value, std::string(kNamedDataLabel)});
      editable.order.push_back(*segment);
    }
    editable.named_data.push_back({std::nullopt, key, *segment});
    editable.has_same_named_data = false;
  }
  return {};
}

}  // namespace etstream
