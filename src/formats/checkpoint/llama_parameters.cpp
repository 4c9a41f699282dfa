// SPDX-License-Identifier: BSD-3-Clause
//
// The fields that ExecuTorch's ModelArgs (examples/models/llama/model_args.py of 1.5.1) take from
// params.json, and the numbers its Transformer has fixed (rope.py: low_freq_factor 1, an original context of
// 8192).
#include "etstream/checkpoint.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

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

/// The members of config.json that say how a model computes, by the kind of their values, each between
/// spaces. rope_parameters, as transformers calls it from version 5 on, is rope_scaling here; its members are
/// among these.
constexpr std::string_view kRope = "rope_scaling.";
constexpr std::string_view kTexts = " model_type hidden_act rope_scaling.type rope_scaling.rope_type ";
constexpr std::string_view kSwitches = " attention_bias mlp_bias use_sliding_window ";
constexpr std::string_view kNumbers =
    " hidden_size num_hidden_layers num_attention_heads num_key_value_heads head_dim vocab_size"
    " intermediate_size max_position_embeddings original_max_position_embeddings partial_rotary_factor"
    " rms_norm_eps rope_theta sliding_window rope_scaling.factor rope_scaling.high_freq_factor"
    " rope_scaling.low_freq_factor rope_scaling.original_max_position_embeddings"
    " rope_scaling.partial_rotary_factor rope_scaling.rope_theta ";
constexpr std::string_view kObjects = " rope_scaling rope_parameters ";
/// Members that change no logits. max_window_layers says nothing without use_sliding_window, and the tensors
/// say whether embeddings are tied. Scales of quantization_config are applied by then, or refused.
constexpr std::string_view kOthers =
    " _attn_implementation _commit_hash _name_or_path architectures attention_dropout attn_implementation"
    " bos_token_id chunk_size_feed_forward dtype eos_token_id id2label initializer_range is_encoder_decoder"
    " label2id max_window_layers name_or_path num_labels output_attentions output_hidden_states pad_token_id"
    " pretraining_tp problem_type quantization_config return_dict tie_word_embeddings torch_dtype"
    " transformers_version transformers_weights use_cache ";

/// Returns the kind that a member's value has to be of: kNull for one that changes nothing, nothing for one
/// that is not known.
std::optional<Kind> kind_of(std::string_view name) {
  const auto is_in = [&](std::string_view names) {
    return name.find(' ') == std::string_view::npos &&
           names.find(text(" {} ", name)) != std::string_view::npos;
  };
  if (is_in(kTexts)) return Kind::kString;
  if (is_in(kSwitches)) return Kind::kBool;
  if (is_in(kNumbers)) return Kind::kDouble;
  if (is_in(kObjects)) return Kind::kObject;
  if (is_in(kOthers)) return Kind::kNull;
  return std::nullopt;
}

/// The members of config.json by name, and those that nothing is known of.
struct Config {
  std::string path;
  std::map<std::string, double, std::less<>> numbers;
  std::map<std::string, std::string, std::less<>> strings;
  std::map<std::string, bool, std::less<>> switches;
  std::set<std::string, std::less<>> nulls;
  std::vector<std::string> unknown;
  std::string wrong;         // a member whose value is of another kind
  bool has_windows = false;  // in layer_types
  bool has_rope = false;     // an object of either name
};

void take_member(JsonReader& json, const std::string& name, Config& out) {
  const JsonTape::Value value = json.take();
  const bool is_integer = value.kind == Kind::kInteger;
  const auto expected = kind_of(name);
  if (value.kind == Kind::kNull) {
    out.nulls.insert(name);
  } else if (!expected) {
    out.unknown.push_back(name);
  } else if (*expected != Kind::kNull && *expected != (is_integer ? Kind::kDouble : value.kind)) {
    const auto kind = *expected == Kind::kDouble ? "a number" : name_of(*expected);
    out.wrong = text("expected {} as {}, found {}", kind, name, name_of(value.kind));
  }
  if (is_integer) out.numbers[name] = static_cast<double>(value.integer);
  if (value.kind == Kind::kDouble) out.numbers[name] = value.number;
  if (value.kind == Kind::kString) out.strings[name] = value.string;
  if (value.kind == Kind::kBool) out.switches[name] = value.boolean;
}

Result<void> read_config_members(JsonReader& json, Config& out) {
  if (json.next().kind != Kind::kObject) return {};
  return json.members([&](std::string_view key) -> Result<void> {
    if (key == "layer_types" && json.next().kind == Kind::kArray) {
      return json.elements([&]() -> Result<void> {
        out.has_windows = json.take().string != "full_attention" || out.has_windows;
        return {};
      });
    }
    const bool is_rope = key == "rope_scaling" || key == "rope_parameters";
    if (!is_rope || json.next().kind != Kind::kObject) {
      take_member(json, std::string(key), out);
      return {};
    }
    if (out.has_rope) out.wrong = "expected rope_scaling or rope_parameters, found both";
    out.has_rope = true;
    return json.members([&](std::string_view inner) -> Result<void> {
      take_member(json, std::string(kRope).append(inner), out);
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
    // transformers has numbers of its own for these where other models than Llama do not say them.
    const bool has_heads = has("num_key_value_heads");
    const bool is_by_heads = model_.type == "llama" || config_.nulls.contains("num_key_value_heads");
    ETSTREAM_TRY(
        put_count("n_kv_heads", !has_heads && is_by_heads ? "num_attention_heads" : "num_key_value_heads"));
    if (has("head_dim") || model_.type == "qwen3") ETSTREAM_TRY(put_count("head_dim", "head_dim"));
    ETSTREAM_TRY(put_count("vocab_size", "vocab_size"));
    ETSTREAM_TRY(put_count("hidden_dim", "intermediate_size"));
    constexpr double kEpsilon = 1e-6;  // what transformers has by default
    put("norm_eps", exact_text(number("rms_norm_eps", kEpsilon)));
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
  bool has(std::string_view number) const { return config_.numbers.contains(number); }
  double number(std::string_view key, double other) const { return value_or(config_.numbers, key, other); }

  Error unsupported(std::string_view what,
                    const char* advice = "take other rules than those to Meta's names") const {
    return with_advice(error_in(ErrorCode::kUnsupported, config_.path,
                                "has {}, which ExecuTorch's Transformer for Llama lacks", what),
                       {advice});
  }

  void put(std::string_view key, std::string_view value) {
    members_ += text(R"({}"{}": {})", members_.empty() ? "" : ", ", key, value);
  }

  Result<void> put_count(std::string_view key, std::string_view in_config) {
    const double count = number(in_config, 0);
    if (count < 1 || count > INT32_MAX || count != std::floor(count)) {
      return error_in(ErrorCode::kCorrupt, config_.path, "expected a positive integer as {}, found {}",
                      in_config, has(in_config) ? exact_text(count) : "none");
    }
    put(key, std::to_string(static_cast<std::int32_t>(count)));
    return {};
  }

  Result<void> check_supported() const {
    if (!config_.wrong.empty()) return error_in(ErrorCode::kCorrupt, config_.path, "{}", config_.wrong);
    const std::string activation = value_or(config_.strings, "hidden_act", std::string("silu"));
    if (activation != "silu") return unsupported(text("hidden_act {}", quote(activation)));
    for (const std::string_view other : {"attention_bias", "mlp_bias", "use_sliding_window"}) {
      if (value_or(config_.switches, other, false)) return unsupported(text("{} true", other));
    }
    if (config_.has_windows) return unsupported("layer_types other than 'full_attention'");
    return check_window();
  }

  /// Refuses a window that is shorter than the longest sequence. ModelArgs has a place for it, which only the
  /// model for Qualcomm's backend reads. Qwen's windows are off without use_sliding_window.
  Result<void> check_window() const {
    constexpr double kMistrals = 4096;  // what transformers has by default
    const bool has_default = model_.type == "mistral" && !config_.nulls.contains("sliding_window");
    const double window = number("sliding_window", has_default ? kMistrals : INFINITY);
    if (model_.has_hf_rope || window >= number("max_position_embeddings", INFINITY)) return {};
    return unsupported(text("sliding_window {}", exact_text(window)),
                       "if no sequence is longer than that, it may be null");
  }

  Result<void> put_rope() {
    constexpr double kTheta = 10000;
    put("rope_theta", exact_text(number("rope_scaling.rope_theta", number("rope_theta", kTheta))));
    const std::string old_name = value_or(config_.strings, "rope_scaling.type", std::string("default"));
    const std::string type = value_or(config_.strings, "rope_scaling.rope_type", old_name);
    put("use_scaled_rope", type == "llama3" ? "true" : "false");
    if (type != "default" && (type != "llama3" || model_.has_hf_rope)) {
      return unsupported(text("RoPE that is scaled by {}", quote(type)));
    }
    if (number("rope_scaling.partial_rotary_factor", number("partial_rotary_factor", 1)) != 1) {
      return unsupported("another partial_rotary_factor than 1");
    }
    for (const std::string& name : config_.unknown) {
      if (name.starts_with(kRope)) return unsupported(name);
    }
    if (type == "default") return {};
    if (number("rope_scaling.low_freq_factor", kLowFrequencyFactor) != kLowFrequencyFactor) {
      return unsupported("another low_freq_factor than 1");
    }
    const double inner =
        number("rope_scaling.original_max_position_embeddings", number("max_position_embeddings", 0));
    if (number("original_max_position_embeddings", inner) != kOriginalContext) {
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
    LlamaParameters out{type, {}, {}};
    const auto* const model = std::ranges::find(kKnownModels, type, &KnownModel::type);
    if (model != kKnownModels.end()) {
      ETSTREAM_TRY(refuse_quantised(checkpoint, [](const auto&) { return true; }));
      ETSTREAM_ASSIGN(out.json, Parameters(config, *model).run());
      out.unknown = std::move(config.unknown);
    }
    return std::optional(std::move(out));
  });
}

}  // namespace etstream
