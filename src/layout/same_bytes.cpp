// SPDX-License-Identifier: BSD-3-Clause
#include "layout/same_bytes.h"

#include <algorithm>
#include <array>

#include "base/try.h"

namespace etstream {

Result<bool> same_bytes(const ByteSource& a, const ByteSource& b) {
  if (a.size() != b.size()) return false;
  std::array<std::byte, 4096> left{};
  std::array<std::byte, 4096> right{};
  for (std::uint64_t at = 0; at < a.size();) {
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(left.size(), a.size() - at));
    ETSTREAM_TRY(a.read_at(at, std::span(left).first(n)));
    ETSTREAM_TRY(b.read_at(at, std::span(right).first(n)));
    if (!std::equal(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(n), right.begin())) return false;
    at += n;
  }
  return true;
}

Result<bool> gives_same_bytes(const Layout& layout, const ByteSource& file) {
  if (layout.size != file.size()) return false;
  for (const Extent& extent : layout.extents) {
    if (extent.source.offset_in(file) == extent.offset) continue;
    ETSTREAM_ASSIGN(const ByteSource there, file.slice(extent.offset, extent.size()));
    ETSTREAM_ASSIGN(const bool same, same_bytes(extent.source, there));
    if (!same) return false;
  }
  return true;
}

}  // namespace etstream
