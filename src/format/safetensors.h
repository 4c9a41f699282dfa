// SPDX-License-Identifier: BSD-3-Clause
//
// safetensors files (huggingface/safetensors), for reading: u64 length of a JSON header, the header, then
// the tensors' bytes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/result.h"
#include "etstream/scalar_type.h"

namespace etstream {

struct SafetensorsEntry {
  std::string dtype;                      // as the file spells it
  std::optional<ScalarType> scalar_type;  // none for what ExecuTorch has no type for
  std::vector<std::uint64_t> shape;
  ByteSource data;  // contiguous
};

using SafetensorsIndex = std::map<std::string, SafetensorsEntry, std::less<>>;

/// The tensors in `file` by name, with their bytes left there. Memory follows the header, which is at
/// most 100,000,000 bytes as the reference implementation has it. Errors: kCorrupt, also for tensors
/// that overlap, leave gaps, or are not as long as their shape says.
[[nodiscard]] Result<SafetensorsIndex> open_safetensors(const ByteSource& file);

}  // namespace etstream
