// SPDX-License-Identifier: BSD-3-Clause
//
// WeightFile: one file of weights of any format, open.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/checkpoint.h"
#include "etstream/file_kind.h"
#include "etstream/result.h"
#include "weights/gguf.h"

namespace etstream {

struct WeightFile {
  std::string path;
  ByteSource file;
  FileKind kind = FileKind::kSafetensors;
  std::vector<CheckpointTensor> tensors;  // in file order
  std::optional<GgufSplit> split;         // where the file itself says that it is one of several
};

/// Opens a file by its content. Errors: kUnsupported for another kind of file; those of opening that kind.
[[nodiscard]] Result<WeightFile> open_weight_file(const std::string& path, const ByteSource& file);

/// Opens a file that an index names: safetensors. Errors: those of opening that kind.
[[nodiscard]] Result<WeightFile> open_indexed_file(const std::string& path, const ByteSource& file);

}  // namespace etstream
