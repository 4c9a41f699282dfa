// SPDX-License-Identifier: BSD-3-Clause
//
// Which format a file is of.
#pragma once

#include "etstream/byte_source.h"
#include "etstream/result.h"

namespace etstream {

enum class FileKind { kProgram, kBundledProgram, kSegmentedBundle, kTensorData, kSafetensors, kGguf };

/// By the identifier at offset 4; of GGUF by that at offset 0, of safetensors by its header, behind a length
/// below 2^32, which no identifier can be taken for. Error: kUnsupported, naming what was found.
[[nodiscard]] Result<FileKind> file_kind(const ByteSource& file);

}  // namespace etstream
