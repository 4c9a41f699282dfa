// SPDX-License-Identifier: BSD-3-Clause
//
// One file of a checkpoint, by itself: tensors behind a header.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/checkpoint.h"
#include "etstream/file_kind.h"
#include "etstream/result.h"

namespace etstream {

struct CheckpointFile {
  ByteSource file;
  FileKind kind = FileKind::kSafetensors;  // or kGguf
  std::uint32_t version = 0;               // of the format; 0 of safetensors, which has none
  ByteSource metadata;                     // of GGUF, as the file has it
  /// In the order of their bytes. The type of a tensor without a layout has the shape behind it, if the file
  /// has one.
  std::vector<CheckpointTensor> tensors;
};

/// "float32 [2, 3]", "Q4_0 [32, 64]".
[[nodiscard]] std::string type_text(const CheckpointTensor& tensor);

/// Errors: those of open_safetensors() and open_gguf().
[[nodiscard]] Result<CheckpointFile> open_safetensors_file(const ByteSource& file);
[[nodiscard]] Result<CheckpointFile> open_gguf_file(const ByteSource& file);

}  // namespace etstream
