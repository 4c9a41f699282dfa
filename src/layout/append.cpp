// SPDX-License-Identifier: BSD-3-Clause
#include "layout/append.h"

#include <algorithm>

#include "base/checked.h"
#include "base/text.h"

namespace etstream {

Result<void> append(Layout& layout, std::uint32_t alignment, std::string_view label, ByteSource source) {
  if (source.size() == 0) return {};
  const auto size = checked_add(layout.size, source.size());
  if (!size) return make_error(ErrorCode::kTooLarge, "the file would be over 2^64 - 1 bytes");
  const auto found = std::find(layout.labels.begin(), layout.labels.end(), label);
  const auto number = static_cast<std::uint32_t>(found - layout.labels.begin());
  if (found == layout.labels.end()) layout.labels.emplace_back(label);
  layout.extents.push_back({layout.size, alignment, number, std::move(source)});
  layout.size = *size;
  return {};
}

Result<void> pad(Layout& layout, std::uint64_t alignment) {
  return append(layout, 1, "padding", ByteSource::zeros(padding_to(layout.size, alignment)));
}

}  // namespace etstream
