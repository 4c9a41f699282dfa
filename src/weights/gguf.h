// SPDX-License-Identifier: BSD-3-Clause
//
// GGUF files (ggml-org/ggml, docs/gguf.md), for reading: counts, metadata, what the tensors are, then their
// bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/checkpoint.h"
#include "etstream/result.h"
#include "etstream/scalar_type.h"

namespace etstream {

struct GgufTensor {
  std::string name;
  std::string_view type;                  // as ggml spells it: "F16", "Q4_0"; lasts as long as the program
  std::optional<ScalarType> scalar_type;  // none for quantised blocks
  std::vector<std::uint64_t> shape;       // outermost first, which is the reverse of the file's order
  ByteSource data;                        // contiguous
};

/// The place of a file among the files that a model goes over: split.no, split.count, split.tensors.count.
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

/// What is in `file`, with the tensors' bytes left there. Memory follows the tensors' descriptions, not the
/// metadata, which is passed over. Errors: kCorrupt, also for names that come twice and tensors that overlap;
/// kUnsupported for other versions, big-endian files and types that ggml has added since or taken away.
[[nodiscard]] Result<GgufFile> open_gguf(const ByteSource& file);

/// The tensors of an open file in the order of their bytes. With `all_shapes`, the types of quantised blocks
/// have their shape with them, "Q4_0 [32, 64]", as those of plain tensors that are too large for a layout do.
[[nodiscard]] std::vector<CheckpointTensor> checkpoint_tensors(GgufFile opened, const ByteSource& file,
                                                               bool all_shapes = false);

}  // namespace etstream
