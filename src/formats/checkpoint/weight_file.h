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
#include "formats/gguf/gguf.h"
#include "formats/segments/file_kind.h"

namespace etstream {

struct WeightFile {
  std::string path;
  ByteSource file;
  FileKind kind = FileKind::kSafetensors;
  std::vector<CheckpointTensor> tensors;  // in file order
  std::optional<GgufSplit> split;         // where the file itself says that it is one of several
};

/// Returns whether an error is about a file, so that another file may be read instead. An error is not about
/// a file if the caller asked to stop, or memory ran out.
[[nodiscard]] inline bool is_about_file(const Error& error) noexcept {
  return error.code != ErrorCode::kInterrupted && error.code != ErrorCode::kOutOfMemory;
}

/// Returns the files that open_weight_file() takes, and the index of several.
[[nodiscard]] Expected expected_weights();

/// Opens a file by its content. Errors: kUnsupported for another kind of file; those of opening that kind.
[[nodiscard]] Result<WeightFile> open_weight_file(const std::string& path, const ByteSource& file);

/// Opens a file that an index names: safetensors, or a file of torch.save. Errors: those of opening that
/// kind.
[[nodiscard]] Result<WeightFile> open_indexed_file(const std::string& path, const ByteSource& file);

}  // namespace etstream
