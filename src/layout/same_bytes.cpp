// SPDX-License-Identifier: BSD-3-Clause
#include "layout/same_bytes.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/try.h"

namespace etstream {

Result<std::optional<std::uint64_t>> first_difference(const ByteSource& a, const ByteSource& b) {
  const std::uint64_t common = std::min(a.size(), b.size());
  std::vector<std::byte> left(std::min<std::uint64_t>(common, std::uint64_t{1} << 18));
  std::vector<std::byte> right(left.size());
  for (std::uint64_t at = 0; at < common;) {
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(left.size(), common - at));
    ETSTREAM_TRY(a.read_at(at, std::span(left).first(n)));
    ETSTREAM_TRY(b.read_at(at, std::span(right).first(n)));
    a.drop_pages(at, n);
    b.drop_pages(at, n);
    if (std::memcmp(left.data(), right.data(), n) == 0) {  // faster than mismatch()
      at += n;
      continue;
    }
    const auto end = left.begin() + static_cast<std::ptrdiff_t>(n);
    const auto different = std::mismatch(left.begin(), end, right.begin()).first;
    return std::optional(at + static_cast<std::uint64_t>(different - left.begin()));
  }
  return a.size() == b.size() ? std::nullopt : std::optional(common);
}

Result<bool> same_bytes(const ByteSource& a, const ByteSource& b) {
  if (a.size() != b.size()) return false;
  ETSTREAM_ASSIGN(const auto different, first_difference(a, b));
  return !different.has_value();
}

Result<bool> gives_same_bytes(const FilePlan& plan, const ByteSource& file) {
  if (plan.size != file.size()) return false;
  for (const Extent& extent : plan.extents) {
    if (extent.source.offset_in(file) == extent.offset) continue;
    ETSTREAM_ASSIGN(const ByteSource there, file.slice(extent.offset, extent.size()));
    ETSTREAM_ASSIGN(const bool same, same_bytes(extent.source, there));
    if (!same) return false;
  }
  return true;
}

}  // namespace etstream
