// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/layout.h"

#include "io/transfer.h"

namespace etstream {

std::uint64_t Layout::memory() const noexcept {
  return kTransferBufferSize + metadata_size + extents.size() * sizeof(Extent);
}

Layout plan_copy(ByteSource source, std::string label) {
  Layout layout;
  layout.size = layout.payload_size = source.size();
  layout.labels.push_back(std::move(label));
  layout.extents.push_back({0, 1, 0, std::move(source)});
  return layout;
}

}  // namespace etstream
