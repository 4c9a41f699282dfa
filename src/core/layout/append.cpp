// SPDX-License-Identifier: BSD-3-Clause
#include "core/layout/append.h"

#include <algorithm>
#include <cassert>
#include <optional>
#include <utility>

#include "core/base/checked.h"
#include "core/base/text.h"
#include "core/base/try.h"

namespace etstream {
namespace {

/// Returns the number of `label`. Looks only among the first few labels and at the last. If each of a million
/// extents had its own label, a search of all would take for ever; a label that stands twice does no harm.
std::uint32_t number_of_label(FilePlan& plan, std::string_view label) {
  constexpr std::ptrdiff_t kFirst = 16;
  std::vector<std::string>& labels = plan.labels;
  if (!labels.empty() && labels.back() == label) return static_cast<std::uint32_t>(labels.size() - 1);
  const auto end = labels.begin() + std::min(kFirst, std::ssize(labels));
  const auto found = std::find(labels.begin(), end, label);
  if (found != end) return static_cast<std::uint32_t>(found - labels.begin());
  labels.emplace_back(label);
  return static_cast<std::uint32_t>(labels.size() - 1);
}

}  // namespace

void fill_header(FilePlan& plan, std::vector<std::byte> bytes) {
  Extent& header = plan.extents.at(1);
  assert(header.source.size() == bytes.size());
  header.source = ByteSource::owned(std::move(bytes));
}

Result<void> check_alignment(std::string_view what, std::uint32_t alignment, std::uint32_t most) {
  if (is_power_of_two(alignment) && alignment <= most) return {};
  return make_error(ErrorCode::kInvalidArgument, "{} {}: expected a power of two from 1 to {}", what,
                    alignment, most);
}

Result<void> append(FilePlan& plan, std::uint32_t alignment, std::string_view label, ByteSource source) {
  if (source.size() == 0) return {};
  const auto size = checked_add(plan.size, source.size());
  if (!size) return make_error(ErrorCode::kTooLarge, "the file would be over 2^64 - 1 bytes");
  const std::uint32_t number = number_of_label(plan, label);
  plan.extents.push_back({plan.size, alignment, number, std::move(source)});
  plan.size = *size;
  return {};
}

Result<void> pad(FilePlan& plan, std::uint64_t alignment) {
  return append(plan, 1, "padding", ByteSource::zeros(padding_to(plan.size, alignment)));
}

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
