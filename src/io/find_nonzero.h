// SPDX-License-Identifier: BSD-3-Clause
//
// Whether padding is zero.
#pragma once

#include <cstdint>
#include <optional>

#include "etstream/byte_source.h"
#include "etstream/result.h"
#include "io/paged_reader.h"

namespace etstream {

struct NonzeroByte {
  std::uint64_t offset = 0;
  int value = 0;
};

/// The first byte of `source` in [begin, end) that is not zero. The range is inside the source.
[[nodiscard]] Result<std::optional<NonzeroByte>> find_nonzero(const ByteSource& source, std::uint64_t begin,
                                                              std::uint64_t end);
/// The same of what `reader` reads: its pages serve what is shorter than one of them, and the source the
/// rest.
[[nodiscard]] Result<std::optional<NonzeroByte>> find_nonzero(PagedReader& reader, std::uint64_t begin,
                                                              std::uint64_t end);

}  // namespace etstream
