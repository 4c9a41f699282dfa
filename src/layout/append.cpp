// SPDX-License-Identifier: BSD-3-Clause
#include "layout/append.h"

#include <algorithm>

#include "base/checked.h"
#include "base/text.h"
#include "base/try.h"

namespace etstream {
namespace {

/// The number of `label`. It is looked for among the first few and the last: where each of a million extents
/// has its own, looking at all would take for ever, and one that stands twice does no harm.
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

}  // namespace etstream
