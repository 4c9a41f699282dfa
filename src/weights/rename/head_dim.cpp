// SPDX-License-Identifier: BSD-3-Clause
#include "weights/rename/head_dim.h"

#include <string_view>

#include "base/try.h"
#include "flatbuffer/json_reader.h"

namespace etstream {

Result<std::optional<std::uint32_t>> read_head_dim(const ByteSource& config) {
  std::uint32_t head_dim = 0;
  std::uint32_t hidden_size = 0;
  std::uint32_t heads = 0;
  ETSTREAM_TRY(read_json(config, ErrorCode::kCorrupt, [&](JsonReader& json) -> Result<void> {
    if (json.next().kind != JsonReader::Kind::kObject) return {};
    return json.members([&](std::string_view key) -> Result<void> {
      const JsonTape::Value value = json.take();
      if (value.kind != JsonReader::Kind::kInteger || value.integer <= 0 || value.integer > INT32_MAX) {
        return {};
      }
      const auto number = static_cast<std::uint32_t>(value.integer);
      if (key == "head_dim") head_dim = number;
      if (key == "hidden_size") hidden_size = number;
      if (key == "num_attention_heads") heads = number;
      return {};
    });
  }));
  if (head_dim != 0) return std::optional(head_dim);
  if (heads == 0 || hidden_size == 0 || hidden_size % heads != 0) return std::optional<std::uint32_t>();
  return std::optional(hidden_size / heads);
}

}  // namespace etstream
