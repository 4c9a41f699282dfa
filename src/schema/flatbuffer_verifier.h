// SPDX-License-Identifier: BSD-3-Clause
//
// Verifies a whole flatbuffer against its schema: every table, vector, string and union that the root leads
// to, and that what lies between them is zero.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "etstream/result.h"
#include "schema/flatbuffer_view.h"

namespace etstream {

/// A range of a file that holds something. [begin, end)
struct UsedRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// What else is to hold, for those who do more with a file, or less, than read objects.
struct FlatbufferChecks {
  /// Objects lie apart from each other with zeros between them, as builders leave them.
  bool between_objects = true;
  /// Vectors of bytes are shared no more than other objects, for those who go through their elements.
  bool walks_bytes = false;
};

/// Checks all of `view`. `also_used` are ranges that belong to no flatbuffer object, such as an extended
/// header. Memory: 16 bytes an object. Time: proportional to the file's size; a file whose objects are
/// shared so often that more would be needed is refused. Errors: kCorrupt for the first thing that is
/// wrong; the source's own.
[[nodiscard]] Result<void> verify_flatbuffer(const FlatbufferView& view,
                                             const std::vector<UsedRange>& also_used = {},
                                             const FlatbufferChecks& checks = {});

}  // namespace etstream
