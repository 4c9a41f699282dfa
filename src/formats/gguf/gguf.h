// SPDX-License-Identifier: BSD-3-Clause
//
// A reader of GGUF files (ggml-org/ggml, docs/gguf.md): counts, metadata, descriptions of the tensors, then
// their bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/result.h"
#include "etstream/tensor.h"

namespace etstream {

struct GgufTensor {
  std::string name;
  std::string type;  // as ggml spells it: "F16", "Q4_0"; "GGML_TYPE_99" for a number that is not known
  std::optional<ScalarType> scalar_type;  // none for quantised blocks
  std::vector<std::uint64_t> shape;       // outermost first, which is the reverse of the file's order
  ByteSource data;                        // contiguous
};

/// The place of a file among the files that make up a model: split.no, split.count, split.tensors.count.
struct GgufSplit {
  std::uint32_t number = 0;              // from 0 on, below `count`
  std::uint32_t count = 0;               // at least 2
  std::optional<std::uint64_t> tensors;  // in all files
};

struct GgufFile {
  std::uint32_t version = 0;  // 2 or 3
  std::uint64_t alignment = 0;
  std::optional<GgufSplit> split;   // none where the model is in this file alone
  ByteSource metadata;              // all entries, as the file has them
  std::vector<GgufTensor> tensors;  // in the order of the file
};

/// Reads the descriptions in `file`, and leaves the tensors' bytes there. A tensor of a type that ggml has
/// added since or has removed gets all bytes up to the next tensor, or to the end of the file, with the
/// padding between them. Memory grows with the tensors' descriptions and the keys of the metadata, but not
/// with its values, which are skipped. Errors: kCorrupt, also for names and keys that come twice and tensors
/// that overlap; kUnsupported for other versions and big-endian files.
[[nodiscard]] Result<GgufFile> open_gguf(const ByteSource& file);

/// Returns the tensors of an open file in the order of their bytes. Quantised blocks, and plain tensors that
/// are too large for a layout, have a shape instead.
[[nodiscard]] std::vector<CheckpointTensor> checkpoint_tensors(GgufFile opened, const ByteSource& file);

}  // namespace etstream
