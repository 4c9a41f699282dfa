// SPDX-License-Identifier: BSD-3-Clause
//
// A range of a file that is open, and may have no name any more.
#pragma once

#include <cstdint>

#include "etstream/byte_source.h"

namespace etstream::python {

/// `descriptor` is duplicated. Raises IoError, and InvalidArgumentError for a range that is not in the file.
[[nodiscard]] ByteSource open_descriptor_source(int descriptor, std::uint64_t offset, std::uint64_t size);

}  // namespace etstream::python
