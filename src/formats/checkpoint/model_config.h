// SPDX-License-Identifier: BSD-3-Clause
//
// The config.json that Hugging Face's checkpoints have beside their weights.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "etstream/byte_source.h"
#include "etstream/result.h"

namespace etstream {

struct ModelConfig {
  std::string path;
  bool is_there = false;
  std::string model_type;  // "llama"; "" where the file does not say
  std::string weights;     // "transformers_weights", the name of the file that transformers opens; or ""
  /// The number of rows of a query or key projection that make up a head: "head_dim", or "hidden_size" over
  /// "num_attention_heads"; nothing if the file does not say.
  std::optional<std::uint32_t> head_dim;
};

/// Returns the folder of `path` with the '/' at its end; "" for a name alone.
[[nodiscard]] std::string folder_of(std::string_view path);

/// Reads `folder`config.json, if it exists; `folder` ends with '/' or is "". Errors: kCorrupt for a file that
/// is not JSON; those of reading.
[[nodiscard]] Result<ModelConfig> read_model_config(const std::string& folder);

}  // namespace etstream
