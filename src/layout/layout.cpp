// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/layout.h"

#include "io/transfer.h"

namespace etstream {

std::uint64_t Layout::memory() const noexcept {
  return kTransferBufferSize + metadata_size + extents.capacity() * sizeof(Extent);
}

}  // namespace etstream
