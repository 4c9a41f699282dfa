// SPDX-License-Identifier: BSD-3-Clause
//
// The fields that ExecuTorch's ModelArgs (examples/models/llama/model_args.py of 1.5.1) take from
// params.json, and the numbers its Transformer has fixed (rope.py: low_freq_factor 1, an original context of
// 8192).
#include "etstream/llama_parameters.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>

#include "core/base/text.h"
#include "core/base/try.h"
#include "flatbuffer/json/json_reader.h"
#include "formats/checkpoint/checkpoint_folder.h"

namespace etstream {
namespace {

using Kind = JsonReader::Kind;

constexpr double kLowFrequencyFactor = 1;
constexpr double kOriginalContext = 8192;

/// A type of transformers' models that ExecuTorch's Transformer computes, with its settings in
/// examples/models. Rules for models with Hugging Face's RoPE leave the rows of queries and keys in their
/// order.
struct KnownModel {
  std::string_view type;
  bool has_hf_rope = false;
  bool has_qkv_bias = false;
  bool has_qk_norm = false;
};
constexpr auto kKnownModels = std::to_array<KnownModel>({
    {.type = "llama"},
    {.type = "mistral"},
    {.type = "qwen2", .has_hf_rope = true, .has_qkv_bias = true},
    {.type = "qwen3", .has_hf_rope = true, .has_qk_norm = true},
});

/// The members of config.json that are numbers, strings or true and false. Members of rope_scaling and
/// rope_parameters are among them as "rope_scaling.factor". transformers has rope_parameters from version 5
/// on.
struct Config {
  std::string path;
  std::map<std::string, double, std::less<>> numbers;
  std::map<std::string, std::string, std::less<>> strings;
  std::map<std::string, bool, std::less<>> switches;
};

void take_member(JsonReader& json, const std::string& key, Config& out) {
  const JsonTape::Value value = json.take();
  if (value.kind == Kind::kInteger) out.numbers[key] = static_cast<double>(value.integer);
  if (value.kind == Kind::kDouble) out.numbers[key] = value.number;
  if (value.kind == Kind::kString) out.strings[key] = value.string;
  if (value.kind == Kind::kBool) out.switches[key] = value.boolean;
}

Result<void> read_config_members(JsonReader& json, Config& out) {
  if (json.next().kind != Kind::kObject) return {};
  return json.members([&](std::string_view key) -> Result<void> {
    const bool is_rope = key == "rope_scaling" || key == "rope_parameters";
    if (!is_rope || json.next().kind != Kind::kObject) {
      take_member(json, std::string(key), out);
      return {};
    }
    return json.members([&](std::string_view inner) -> Result<void> {
      take_member(json, "rope_scaling." + std::string(inner), out);
      return {};
    });
  });
}

template <class Value>
Value value_or(const std::map<std::string, Value, std::less<>>& values, std::string_view key, Value other) {
  const auto found = values.find(key);
  return found == values.end() ? std::move(other) : found->second;
}

class Parameters {
 public:
  Parameters(const Config& config, const KnownModel& model) : config_(config), model_(model) {}

  Result<std::string> run() {
    ETSTREAM_TRY(check_supported());
    ETSTREAM_TRY(put_count("dim", "hidden_size"));
    ETSTREAM_TRY(put_count("n_layers", "num_hidden_layers"));
    ETSTREAM_TRY(put_count("n_heads", "num_attention_heads"));
    const bool has_key_heads = config_.numbers.contains("num_key_value_heads");
    ETSTREAM_TRY(put_count("n_kv_heads", has_key_heads ? "num_key_value_heads" : "num_attention_heads"));
    if (config_.numbers.contains("head_dim")) ETSTREAM_TRY(put_count("head_dim", "head_dim"));
    ETSTREAM_TRY(put_count("vocab_size", "vocab_size"));
    ETSTREAM_TRY(put_count("hidden_dim", "intermediate_size"));
    constexpr double kEpsilon = 1e-6;  // what transformers has by default
    put("norm_eps", exact_text(value_or(config_.numbers, "rms_norm_eps", kEpsilon)));
    ETSTREAM_TRY(put_rope());
    if (model_.has_hf_rope) put("use_hf_rope", "true");
    if (model_.has_qkv_bias) put("attention_qkv_bias", "true");
    if (model_.has_qk_norm) {
      put("use_qk_norm", "true");
      put("qk_norm_before_rope", "true");
    }
    return "{" + members_ + "}\n";
  }

 private:
  Error unsupported(std::string_view what) const {
    return with_advice(error_in(ErrorCode::kUnsupported, config_.path,
                                "has {}, which ExecuTorch's Transformer for Llama lacks", what),
                       {"take other rules than those to Meta's names"});
  }

  void put(std::string_view key, std::string_view value) {
    members_ += text(R"({}"{}": {})", members_.empty() ? "" : ", ", key, value);
  }

  Result<void> put_count(std::string_view key, std::string_view in_config) {
    const double number = value_or(config_.numbers, in_config, 0.0);
    if (number < 1 || number > INT32_MAX || number != std::floor(number)) {
      return error_in(ErrorCode::kCorrupt, config_.path, "expected a positive integer as {}, found {}",
                      in_config, config_.numbers.contains(in_config) ? exact_text(number) : "none");
    }
    put(key, std::to_string(static_cast<std::int32_t>(number)));
    return {};
  }

  Result<void> check_supported() const {
    const std::string activation = value_or(config_.strings, "hidden_act", std::string("silu"));
    if (activation != "silu") return unsupported(text("hidden_act {}", quote(activation)));
    for (const std::string_view other : {"attention_bias", "mlp_bias", "use_sliding_window"}) {
      if (value_or(config_.switches, other, false)) return unsupported(text("{} true", other));
    }
    return {};
  }

  Result<void> put_rope() {
    constexpr double kTheta = 10000;
    const double theta = value_or(config_.numbers, "rope_scaling.rope_theta", kTheta);
    put("rope_theta", exact_text(value_or(config_.numbers, "rope_theta", theta)));
    const std::string old_name = value_or(config_.strings, "rope_scaling.type", std::string("default"));
    const std::string type = value_or(config_.strings, "rope_scaling.rope_type", old_name);
    put("use_scaled_rope", type == "llama3" ? "true" : "false");
    if (type == "default") return {};
    if (type != "llama3" || model_.has_hf_rope)
      return unsupported(text("RoPE that is scaled by {}", quote(type)));
    const auto is = [&](std::string_view key, double expected) {
      return value_or(config_.numbers, key, expected) == expected;
    };
    if (!is("rope_scaling.low_freq_factor", kLowFrequencyFactor)) {
      return unsupported("another low_freq_factor than 1");
    }
    if (!is("rope_scaling.original_max_position_embeddings", kOriginalContext)) {
      return unsupported("another original_max_position_embeddings than 8192");
    }
    ETSTREAM_TRY(put_count("rope_scale_factor", "rope_scaling.factor"));
    return put_count("high_freq_factor", "rope_scaling.high_freq_factor");
  }

  const Config& config_;
  const KnownModel& model_;
  std::string members_;
};

}  // namespace

Result<std::optional<LlamaParameters>> llama_parameters(const Checkpoint& checkpoint) {
  return without_exceptions([&]() -> Result<std::optional<LlamaParameters>> {
    std::optional<LlamaParameters> none;
    const bool is_metas = std::ranges::any_of(checkpoint.tensors, [](const CheckpointTensor& tensor) {
      return tensor.name == "tok_embeddings.weight";
    });
    if (!is_metas || checkpoint.files.empty()) return none;
    Config config;
    config.path = folder_of(checkpoint.files.front()) + "config.json";
    const auto file = ByteSource::file(config.path);
    if (!file && file.error().code == ErrorCode::kNotFound) return none;
    if (!file) return file.error();
    ETSTREAM_TRY(read_json(*file, ErrorCode::kCorrupt,
                           [&](JsonReader& json) { return read_config_members(json, config); }));
    const std::string type = value_or(config.strings, "model_type", std::string());
    if (type.empty()) return none;
    LlamaParameters out{type, {}};
    const auto* const model = std::ranges::find(kKnownModels, type, &KnownModel::type);
    if (model != kKnownModels.end()) {
      ETSTREAM_ASSIGN(out.json, Parameters(config, *model).run());
    }
    return std::optional(std::move(out));
  });
}

}  // namespace etstream
