// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/layout.h"

#include "base/try.h"
#include "io/transfer.h"

namespace etstream {

std::uint64_t Layout::memory() const noexcept {
  return kTransferBufferSize + metadata_size + extents.size() * sizeof(Extent);
}

Result<ByteSource> source_of(const Layout& layout) {
  return without_exceptions([&]() -> Result<ByteSource> {
    if (layout.trailer) return Error{ErrorCode::kUnsupported, "the end of the file is not known yet"};
    std::vector<ByteSource> parts;
    for (const Extent& extent : layout.extents) parts.push_back(extent.source);
    return ByteSource::concatenation(std::move(parts));
  });
}

Layout plan_copy(ByteSource source, std::string label) {
  Layout layout;
  layout.size = layout.payload_size = source.size();
  layout.labels.push_back(std::move(label));
  layout.extents.push_back({0, 1, 0, std::move(source)});
  return layout;
}

}  // namespace etstream
