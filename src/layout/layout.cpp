// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/layout.h"

#include "io/transfer.h"

namespace etstream {

std::uint64_t Layout::memory() const noexcept {
  return kTransferBufferSize + metadata_size + extents.capacity() * sizeof(Extent);
}

Layout plan_copy(ByteSource source, std::string label) {
  Layout layout;
  layout.size = layout.payload_size = source.size();
  layout.extents.push_back({0, 1, std::move(label), std::move(source)});
  return layout;
}

}  // namespace etstream
