// SPDX-License-Identifier: BSD-3-Clause
//
// What a program's segments are used for.
#pragma once

#include <vector>

#include "etstream/program.h"
#include "etstream/result.h"
#include "flatbuffer/table_reader.h"

namespace etstream {

/// Says it of each of `segments`, which are those of the program whose root table is `root`: see SegmentInfo;
/// of several uses the first. Errors: those of FlatbufferView.
[[nodiscard]] Result<void> note_uses(const TableReader& root, std::vector<SegmentInfo>& segments);

}  // namespace etstream
