// SPDX-License-Identifier: BSD-3-Clause
#include "layout/segments.h"

#include <optional>

#include "base/checked.h"
#include "base/text.h"
#include "base/try.h"
#include "layout/append.h"

namespace etstream {

Result<std::vector<std::uint64_t>> place(const std::vector<Segment>& segments) {
  std::vector<std::uint64_t> offsets;
  std::uint64_t end = 0;
  for (const Segment& segment : segments) {
    const auto offset = checked_add(end, padding_to(end, segment.alignment));
    const auto next = offset ? checked_add(*offset, segment.source.size()) : std::nullopt;
    if (!next) return make_error(ErrorCode::kTooLarge, "the segments would be over 2^64 - 1 bytes");
    offsets.push_back(*offset);
    end = *next;
  }
  return offsets;
}

Result<std::uint64_t> append(Layout& layout, const std::vector<Segment>& segments,
                             const std::vector<std::uint64_t>& offsets, std::uint64_t base_alignment) {
  ETSTREAM_TRY(pad(layout, base_alignment));
  const std::uint64_t base = layout.size;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const auto at = checked_add(base, offsets[i]);
    if (!at) return make_error(ErrorCode::kTooLarge, "the file would be over 2^64 - 1 bytes");
    ETSTREAM_TRY(append(layout, 1, "padding", ByteSource::zeros(*at - layout.size)));
    ETSTREAM_TRY(append(layout, segments[i].alignment, segments[i].label, segments[i].source));
  }
  return base;
}

}  // namespace etstream
