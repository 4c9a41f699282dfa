// SPDX-License-Identifier: BSD-3-Clause
//
// What a graph of the native backend (program.ptg) says of the data that is shipped beside it.
#pragma once

#include <string>

#include "etstream/byte_source.h"
#include "etstream/native_package.h"
#include "etstream/result.h"

namespace etstream {

/// See read_native_graph(ByteSource). `name` is what messages call it.
[[nodiscard]] Result<NativeGraph> read_native_graph(const ByteSource& graph, const std::string& name);

}  // namespace etstream
