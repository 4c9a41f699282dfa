// SPDX-License-Identifier: BSD-3-Clause
//
// Which format a file is of.
#pragma once

#include "etstream/byte_source.h"
#include "etstream/result.h"

namespace etstream {

enum class FileKind { kProgram, kBundledProgram, kSegmentedBundle, kTensorData };

/// By the identifier at offset 4. Error: kUnsupported, naming what was found.
[[nodiscard]] Result<FileKind> file_kind(const ByteSource& file);

}  // namespace etstream
