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

Result<std::uint64_t> append(FilePlan& plan, const std::vector<Segment>& segments,
                             const std::vector<std::uint64_t>& offsets, std::uint64_t base_alignment) {
  ETSTREAM_TRY(pad(plan, base_alignment));
  const std::uint64_t base = plan.size;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const auto at = checked_add(base, offsets[i]);
    if (!at) return make_error(ErrorCode::kTooLarge, "the file would be over 2^64 - 1 bytes");
    ETSTREAM_TRY(append(plan, 1, "padding", ByteSource::zeros(*at - plan.size)));
    ETSTREAM_TRY(append(plan, segments[i].alignment, segments[i].label, segments[i].source));
  }
  return base;
}

}  // namespace etstream
