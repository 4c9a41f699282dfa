// SPDX-License-Identifier: BSD-3-Clause
#include "formats/checkpoint/model_config.h"

#include "core/base/try.h"
#include "flatbuffer/json/json_reader.h"

namespace etstream {
namespace {

using Kind = JsonReader::Kind;

Result<void> read_members(JsonReader& json, ModelConfig& out) {
  if (json.next().kind != Kind::kObject) return {};
  std::uint32_t hidden_size = 0;
  std::uint32_t heads = 0;
  ETSTREAM_TRY(json.members([&](std::string_view key) -> Result<void> {
    const JsonTape::Value value = json.take();
    if (value.kind == Kind::kString) {
      if (key == "model_type") out.model_type = value.string;
      if (key == "transformers_weights") out.weights = value.string;
    }
    if (value.kind != Kind::kInteger || value.integer <= 0 || value.integer > INT32_MAX) return {};
    const auto number = static_cast<std::uint32_t>(value.integer);
    if (key == "head_dim") out.head_dim = number;
    if (key == "hidden_size") hidden_size = number;
    if (key == "num_attention_heads") heads = number;
    return {};
  }));
  if (!out.head_dim && heads != 0 && hidden_size != 0 && hidden_size % heads == 0) {
    out.head_dim = hidden_size / heads;
  }
  return {};
}

}  // namespace

std::string folder_of(std::string_view path) { return std::string(path.substr(0, path.rfind('/') + 1)); }

Result<ModelConfig> read_model_config(const std::string& folder) {
  ModelConfig out;
  out.path = folder + "config.json";
  const auto file = ByteSource::file(out.path);
  if (!file) {
    if (file.error().code == ErrorCode::kNotFound) return out;
    return file.error();
  }
  out.is_there = true;
  ETSTREAM_TRY(
      read_json(*file, ErrorCode::kCorrupt, [&](JsonReader& json) { return read_members(json, out); }));
  return out;
}

}  // namespace etstream
