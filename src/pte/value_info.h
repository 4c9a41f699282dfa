// SPDX-License-Identifier: BSD-3-Clause
//
// A program's values as ValueInfo has them.
#pragma once

#include "etstream/program.h"
#include "flatbuffer/table_reader.h"

namespace etstream {

/// What an EValue's union holds; none stands for NONE. Errors: those of FlatbufferView.
[[nodiscard]] Result<ValueInfo> read_value_info(const std::optional<TableReader>& held);

}  // namespace etstream
