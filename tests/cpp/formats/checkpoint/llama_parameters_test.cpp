// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/checkpoint.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include "test_errors.h"
#include "test_files.h"
#include "test_sources.h"

namespace etstream::llama_parameters_test {
namespace {

constexpr std::string_view kCounts =
    R"("hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100,)"
    R"( "intermediate_size": 16)";
constexpr std::string_view kScaled =
    R"("rope_type": "llama3", "factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,)"
    R"( "original_max_position_embeddings": 8192)";

std::string join(std::string_view members, std::string_view more) {
  return std::string(members) + ", " + std::string(more);
}

/// A checkpoint with a tensor of this name beside a config.json.
class Folder {
 public:
  explicit Folder(const std::string& config) { put_file(folder_ / "config.json", config); }
  [[nodiscard]] Result<std::optional<LlamaParameters>> read(
      const std::string& tensor = "tok_embeddings.weight") const {
    Checkpoint checkpoint;
    checkpoint.files = {folder_ / "model.safetensors"};
    checkpoint.tensors.push_back({tensor, "F32", std::nullopt, source_of("")});
    return llama_parameters(checkpoint);
  }

 private:
  TemporaryFolder folder_;
};

/// The text of params.json for a model of this type with these members.
std::string json_of(std::string_view type, std::string_view members) {
  const Folder folder("{\"model_type\": \"" + std::string(type) + "\", " + std::string(members) + "}");
  const auto read = folder.read();
  if (!read) return error_of(read).c_str();
  return *read ? (*read)->json : "none";
}

TEST_CASE("each member of params.json has its value from config.json, or what transformers has by default") {
  CHECK(json_of("llama", kCounts) ==
        "{\"dim\": 8, \"n_layers\": 2, \"n_heads\": 4, \"n_kv_heads\": 4, \"vocab_size\": 100, "
        "\"hidden_dim\": 16, \"norm_eps\": 1e-06, \"rope_theta\": 10000, \"use_scaled_rope\": false}\n");
  const std::string more =
      R"("num_key_value_heads": 1, "head_dim": 3, "rms_norm_eps": 1e-05, "rope_theta": 500000.0,)"
      R"( "rope_scaling": {)" +
      std::string(kScaled) + "}";
  CHECK(json_of("llama", join(kCounts, more)) ==
        "{\"dim\": 8, \"n_layers\": 2, \"n_heads\": 4, \"n_kv_heads\": 1, \"head_dim\": 3, \"vocab_size\": "
        "100, "
        "\"hidden_dim\": 16, \"norm_eps\": 1e-05, \"rope_theta\": 5e+05, \"use_scaled_rope\": true, "
        "\"rope_scale_factor\": 32, \"high_freq_factor\": 4}\n");
  const auto* const theta = R"("rope_theta": 1, "rope_parameters": {"rope_theta": 20000, "type": "default"})";
  CHECK(json_of("llama", join(kCounts, theta))
            .ends_with("\"rope_theta\": 20000, \"use_scaled_rope\": false}\n"));
  CHECK(json_of("llama", join(kCounts, "\"rope_scaling\": null")) == json_of("llama", kCounts));
  CHECK(exactly(json_of("llama", join(kCounts, "\"head_dim\": 2147483647"))) ==
        containing("\"head_dim\": 2147483647, "));
}

TEST_CASE("what says nothing of a model gives no parameters") {
  for (const char* const config : {"{}", "[1]", "\"llama\"", "{\"model_type\": 1}"}) {
    CAPTURE(config);
    const auto read = Folder(config).read();
    REQUIRE(read);
    CHECK_FALSE(read->has_value());
  }
  const Folder folder("{\"model_type\": \"llama\", " + std::string(kCounts) + "}");
  CHECK_FALSE(folder.read("model.embed_tokens.weight").value().has_value());
  CHECK_FALSE(llama_parameters(Checkpoint{}).value().has_value());
}

TEST_CASE("counts that are none, and members that no Transformer of ExecuTorch's has, are refused by name") {
  for (const char* const size : {"0", "-1", "1.5", "2147483648"}) {
    CAPTURE(size);
    for (const std::string name : {"hidden_size", "head_dim", "num_key_value_heads"}) {
      CHECK(exactly(json_of("llama", join(kCounts, "\"" + name + "\": " + size))) ==
            containing("expected a positive integer as " + name + ", found "));
    }
  }
  CHECK(json_of("llama", "\"hidden_size\": 8")
            .ends_with("config.json: expected a positive integer as num_hidden_layers, found none"));
  struct Row {
    std::string members;
    std::string_view expected;
  };
  const auto scaled = [](std::string_view more) { return "\"rope_scaling\": {" + join(kScaled, more) + "}"; };
  const Row rows[] = {
      {"\"hidden_act\": \"gelu\"", "has hidden_act 'gelu'"},
      {"\"attention_bias\": true", "has attention_bias true"},
      {"\"mlp_bias\": true", "has mlp_bias true"},
      {"\"partial_rotary_factor\": 0.5", "has another partial_rotary_factor than 1"},
      {R"("rope_parameters": {"sliding_attention": {}})", "has rope_scaling.sliding_attention, which"},
      {R"("rope_parameters": {}, "rope_scaling": {})",
       "expected rope_scaling or rope_parameters, found both"},
      {R"("max_position_embeddings": 4096, "rope_scaling": {"rope_type": "llama3", "factor": 2})",
       "has another original_max_position_embeddings than 8192"},
      {R"("rope_scaling": {"type": "linear"})", "has RoPE that is scaled by 'linear'"},
      {scaled("\"low_freq_factor\": 2"), "has another low_freq_factor than 1"},
      {scaled("\"original_max_position_embeddings\": 4096"),
       "has another original_max_position_embeddings than 8192"},
      {scaled("\"factor\": 0.5"), "a positive integer as rope_scaling.factor, found 0.5"},
      {scaled("\"high_freq_factor\": 0"), "a positive integer as rope_scaling.high_freq_factor, found 0"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.members);
    CHECK(exactly(json_of("llama", join(kCounts, row.members))) == containing(std::string(row.expected)));
  }
  const std::string heads = join(kCounts, "\"num_key_value_heads\": 4");
  CHECK(exactly(json_of("qwen3", heads)) == containing("a positive integer as head_dim, found none"));
  CHECK(exactly(json_of("qwen2", kCounts)) == containing("as num_key_value_heads, found none"));
  // More is in tests/cli/cases/reads_and_writes_torch_files.sh.
  const Folder folder("{\"model_type\": \"llama\", \"new\": 1, \"dtype\": \"x\", \"old\": null, " +
                      std::string(kCounts) + "}");
  CHECK(folder.read().value()->unknown == std::vector<std::string>{"new"});
}

}  // namespace
}  // namespace etstream::llama_parameters_test
