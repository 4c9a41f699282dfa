// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/checkpoint.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "formats/checkpoint/rename/rename_rules.h"
#include "test_errors.h"
#include "test_files.h"
#include "test_sources.h"

namespace etstream {
namespace {

/// Makes a tensor of bytes, with the first letters of the alphabet as its data.
CheckpointTensor byte_tensor(std::string name, std::vector<std::int32_t> sizes) {
  const std::uint64_t size = byte_size(ScalarType::kUInt8, sizes).value();
  std::string data;
  for (std::uint64_t i = 0; i < size; ++i) data += static_cast<char>('a' + i % 26);
  std::vector<std::uint8_t> dim_order;
  for (std::size_t i = 0; i < sizes.size(); ++i) dim_order.push_back(static_cast<std::uint8_t>(i));
  return {std::move(name), "U8", TensorLayout{ScalarType::kUInt8, std::move(sizes), std::move(dim_order)},
          source_of(data)};
}

Checkpoint checkpoint_of(const std::vector<std::string>& names) {
  Checkpoint out;
  for (const std::string& name : names) out.tensors.push_back(byte_tensor(name, {4, 1}));
  return out;
}

std::string names_of(const Checkpoint& checkpoint) {
  std::string out;
  for (const CheckpointTensor& tensor : checkpoint.tensors) out += (out.empty() ? "" : " ") + tensor.name;
  return out;
}

/// Returns each tensor as "NAME uint8 [2, 3]=abcdef".
std::string spelled(const Checkpoint& checkpoint) {
  std::string out;
  for (const CheckpointTensor& tensor : checkpoint.tensors) {
    out +=
        (out.empty() ? "" : "; ") + tensor.name + " " + describe(*tensor.layout) + "=" + text_of(tensor.data);
  }
  return out;
}

RenameRules rules_of(std::string_view json) {
  auto rules = RenameRules::read(source_of(json));
  REQUIRE_MESSAGE(rules, rules.error().message);
  return *rules;
}

/// Returns the names after the rules.
std::string renamed(std::string_view json, const std::vector<std::string>& names) {
  Checkpoint checkpoint = checkpoint_of(names);
  const auto report = apply(rules_of(json), checkpoint);
  REQUIRE_MESSAGE(report, report.error().message);
  return names_of(checkpoint);
}

/// Returns the tensors that the rules make of one, or the error.
std::string made_of(std::string_view json, CheckpointTensor tensor, const RenameOptions& options = {}) {
  Checkpoint checkpoint;
  checkpoint.tensors.push_back(std::move(tensor));
  const auto report = apply(rules_of(json), checkpoint, options);
  return report ? spelled(checkpoint) : error_of(report).c_str();
}

TEST_CASE("a star of a pattern stands for one or more characters other than a dot, and two for any") {
  struct Case {
    const char* pattern;
    const char* key;
    const char* runs;  // each in brackets; null if it doesn't match
  };
  for (const Case& example : std::vector<Case>{
           {"a.b", "a.b", ""},
           {"", "", ""},
           {"*", "abc", "[abc]"},
           {"*", "a.b", nullptr},
           {"a*a", "a", nullptr},
           {"a*a", "aa", nullptr},
           {"a*a", "aba", "[b]"},
           {"layers.*.w", "layers.12.w", "[12]"},
           {"layers.*.w", "layers.1.2.w", nullptr},
           {"*.*", "a.b.c", nullptr},
           {"**", "a.b.c", "[a.b.c]"},
           {"a**", "a", nullptr},
           {"***", "a.b", "[a.][b]"},
           {"x.**.layers.*.w", "x.y.z.layers.1.w", "[y.z][1]"},
           {"x.**.layers.*.w", "x.y.layers.1.2.w", nullptr},
           {"**.*.w", "a.b.c.w", "[a.b][c]"},
           {"*.**", "a", nullptr},
           {"*b*b", "abcb", "[a][c]"},
           {"*b*b", "abb", nullptr},
           {"*.b*c", "a.bxcxc", "[a][xcx]"},
           {"a*a*.c", "axaxa.c", "[x][xa]"},
           {"*-*.w", "1-2-3.w", "[1][2-3]"},
           {"*a.b", "a.b", nullptr},
       }) {
    CAPTURE(example.pattern);
    CAPTURE(example.key);
    std::vector<std::string_view> runs;
    const bool matches = NamePattern(example.pattern).matches(example.key, runs);
    CHECK(matches == (example.runs != nullptr));
    if (!matches || !example.runs) continue;
    std::string spelled_runs;
    for (const std::string_view run : runs) spelled_runs += "[" + std::string(run) + "]";
    CHECK(spelled_runs == example.runs);
    CHECK(NamePattern(example.pattern).filled(runs) == example.key);
  }
}

TEST_CASE("tensors get the names of the first rule that matches, and keep theirs without one") {
  CHECK(renamed("{}", {"a", "b"}) == "a b");
  CHECK(renamed(R"({"a": "b", "b": "a"})", {"a", "b", "c"}) == "b a c");
  CHECK(renamed(R"({"m.*.x.*": "l.*.y.*"})", {"m.1.x.w", "m.1.x.w.b", "m.x"}) == "l.1.y.w m.1.x.w.b m.x");
  CHECK(renamed(R"({"m.*.*": "*.m"})", {"m.1.x"}) == "1.m");
  CHECK(renamed(R"({"*": "p.*", "a": "q"})", {"a"}) == "p.a");
  CHECK(renamed(R"({"a": "q", "*": "p.*"})", {"a", "b"}) == "q p.b");
  CHECK(renamed(R"({"a*": "q.*", "*": "p.*"})", {"ab", "b"}) == "q.b p.b");
  CHECK(renamed(R"({"*b": "q.*", "a*": "p.*"})", {"a*", "ab"}) == "p.* q.a");
  CHECK(renamed(R"({"c": "d", "a*": "p.*"})", {"a*", "c"}) == "p.* d");
  CHECK(renamed(R"({"\u00e9": "\u00df"})", {"é"}) == "ß");
}

TEST_CASE("a tensor may be left out, or get several names that share its bytes") {
  CHECK(renamed(R"({"a": null, "*.inv_freq": null})", {"a", "b", "c.inv_freq"}) == "b");
  Checkpoint checkpoint = checkpoint_of({"a"});
  REQUIRE(apply(rules_of(R"({"a": ["x", {"key": "y"}]})"), checkpoint));
  CHECK(names_of(checkpoint) == "x y");
  CHECK(checkpoint.tensors[0].data.offset_in(checkpoint.tensors[1].data) == 0);
}

TEST_CASE("rules do not make many times as much of the tensors") {
  std::vector<std::string> names;
  std::string targets;
  for (int i = 0; i < 300; ++i) {
    names.push_back(std::to_string(i));
    targets += (i == 0 ? "\"" : ", \"") + std::to_string(i) + ".*\"";
  }
  Checkpoint checkpoint = checkpoint_of(names);
  CHECK(error_of(apply(rules_of("{\"*\": [" + targets + "]}"), checkpoint)) ==
        "kTooLarge: rule '*': expected new names of at most 16 times the size of the old ones, found more");
  names.resize(100);
  checkpoint = checkpoint_of(names);
  CHECK(apply(rules_of("{\"*\": [" + targets + "]}"), checkpoint));
  // The old tensor counts as 257 bytes, and the new one as 256 more than its name has.
  const auto renamed_to = [](std::size_t length) {
    Checkpoint one = checkpoint_of({"a"});
    return error_of(apply(rules_of(R"({"a": ")" + std::string(length, 'x') + "\"}"), one));
  };
  constexpr std::size_t kMost = (std::size_t{8} << 20) + 16 * 257 - 256;
  CHECK(renamed_to(kMost) == "no error");
  CHECK(renamed_to(kMost + 1) == containing("kTooLarge: rule 'a': expected new names of at most 16 times"));
}

TEST_CASE("a name is compared with at most 1024 patterns") {
  const auto rules = [](int patterns) {
    std::string out = R"({"a": "b")";
    for (int i = 0; i < patterns; ++i) out += ", \"" + std::to_string(i) + ".*\": null";
    return RenameRules::read(source_of(out + R"(, "b": "c"})"));
  };
  CHECK(rules(1024));
  CHECK(error_of(rules(1025)) ==
        containing("rule '1024.*': expected at most 1024 patterns with '*', found more"));
}

TEST_CASE("a name is given unless the checkpoint has a tensor of another one") {
  const auto* const rules = R"({"in.*": ["e.*", {"key": "o.*", "unless": "head.*"}], "head.*": "o.*"})";
  CHECK(renamed(rules, {"in.w", "norm"}) == "e.w o.w norm");
  CHECK(renamed(rules, {"in.w", "head.w"}) == "e.w o.w");
  CHECK(renamed(rules, {"head.w", "in.w"}) == "o.w e.w");
  CHECK(renamed(R"({"a": {"key": "b", "unless": "a"}})", {"a", "c"}) == "c");
}

TEST_CASE("a tensor is cut along its first dimension") {
  const CheckpointTensor tensor = byte_tensor("t", {6, 2});
  CHECK(made_of(R"({"t": {"split": ["a", "b"]}})", tensor) == "a uint8 [3, 2]=abcdef; b uint8 [3, 2]=ghijkl");
  CHECK(made_of(R"({"*": {"split": [{"key": "*q", "rows": "columns"}, "*k", "*v"]}})", tensor) ==
        "tq uint8 [2, 2]=abcd; tk uint8 [2, 2]=efgh; tv uint8 [2, 2]=ijkl");
  CHECK(made_of(R"({"t": {"split": ["a", {"key": "b", "rows": 5}]}})", tensor) ==
        "a uint8 [1, 2]=ab; b uint8 [5, 2]=cdefghijkl");
  CHECK(made_of(R"({"t": {"split": [{"key": "a", "rows": 0}, {"key": "b", "rows": 6}]}})", tensor) ==
        "a uint8 [0, 2]=; b uint8 [6, 2]=abcdefghijkl");
  CHECK(made_of(R"({"t": {"split": [{"key": "a", "unless": "t"}, "b", "c"]}})", tensor) ==
        "b uint8 [2, 2]=efgh; c uint8 [2, 2]=ijkl");
  CHECK(made_of(R"({"t": {"split": ["a", {"key": "b", "interleave_rope": true}]}})", byte_tensor("t", {8}),
                {4}) == "a uint8 [4]=abcd; b uint8 [4]=egfh");
  CHECK(made_of(R"({"t": {"split": ["a", "b"]}})", byte_tensor("t", {0, 2})) ==
        "a uint8 [0, 2]=; b uint8 [0, 2]=");
  CHECK(made_of(R"({"t": {"split": [{"key": "a", "rows": 0}, "b"]}})", byte_tensor("t", {1, 2})) ==
        "a uint8 [0, 2]=; b uint8 [1, 2]=ab");
  CHECK(made_of(R"({"t": {"split": [{"key": "a", "rows": "columns"}, "b"]}})", byte_tensor("t", {2, 0})) ==
        "a uint8 [0, 0]=; b uint8 [2, 0]=");
}

TEST_CASE("rows that can't be cut as the rule says are an error") {
  const auto* const halves = R"({"t": {"split": ["a", "b"]}})";
  const std::string place = "memory: tensor 't', rule 't': ";
  const auto indivisible =
      "kInvalidArgument: " + place + "its 5 rows can't be divided into the parts of the rule";
  const CheckpointTensor five = byte_tensor("t", {5, 2});
  CHECK(made_of(halves, five) == indivisible);
  CHECK(made_of(R"({"t": {"split": ["a", {"key": "b", "rows": 6}]}})", five) == indivisible);
  CHECK(made_of(R"({"t": {"split": [{"key": "a", "rows": 3}, {"key": "b", "rows": 1}]}})", five) ==
        indivisible);
  CHECK(made_of(R"({"t": {"split": [{"key": "a", "rows": 9223372036854775807}, "b"]}})", five) ==
        indivisible);
  CHECK(made_of(R"({"t": {"split": [{"key": "a", "rows": "columns"}, "b"]}})", byte_tensor("t", {5})) ==
        "kInvalidArgument: " + place + "expected rows and columns, found uint8 [5]");
  CHECK(made_of(halves, byte_tensor("t", {})) ==
        "kInvalidArgument: " + place + "expected rows, found uint8 []");
  CheckpointTensor tensor = byte_tensor("t", {2, 3});
  tensor.layout->sizes = {2, -1};
  CHECK(made_of(R"({"t": {"split": [{"key": "a", "rows": "columns"}, "b"]}})", tensor) ==
        "kInvalidArgument: " + place + "expected rows and columns, found uint8 [2, -1]");
  tensor.layout->dim_order = {1, 0};
  CHECK(made_of(halves, tensor) ==
        "kUnsupported: " + place + "expected rows that lie one after another, found them in another order");
  tensor.layout.reset();
  tensor.type = "Q4_0";
  CHECK(made_of(halves, tensor) == "kUnsupported: " + place + "expected rows, found data of type 'Q4_0'");
}

constexpr const char* kInterleave = R"({"t": {"key": "a", "interleave_rope": true}})";

TEST_CASE("rows are interleaved in heads of the size that the options give, or config.json") {
  CHECK(made_of(kInterleave, byte_tensor("t", {4, 2}), {4}) == "a uint8 [4, 2]=abefcdgh");
  CHECK(made_of(kInterleave, byte_tensor("t", {4, 2}), {2}) == "a uint8 [4, 2]=abcdefgh");
  CHECK(made_of(kInterleave, byte_tensor("t", {0, 2}), {2}) == "a uint8 [0, 2]=");
  const TemporaryFolder folder;
  const auto with_config = [&](const std::string& config) {
    put_file(folder / "config.json", config);
    Checkpoint checkpoint;
    checkpoint.files = {folder / "model.safetensors"};
    checkpoint.tensors = {byte_tensor("t", {8})};
    const auto report = apply(rules_of(kInterleave), checkpoint);
    return report ? text_of(checkpoint.tensors[0].data) : error_of(report).c_str();
  };
  CHECK(with_config(R"({"head_dim": 4})") == "acbdegfh");
  CHECK(with_config(R"({"num_attention_heads": 1, "hidden_size": 8})") == "aebfcgdh");
  CHECK(with_config(R"({"head_dim": null, "num_attention_heads": 2, "hidden_size": 8})") == "acbdegfh");
  CHECK(with_config(R"({"num_attention_heads": 1, "hidden_size": 8, "head_dim": 4})") == "acbdegfh");
  CHECK(with_config(R"({"head_dim": [2], "num_attention_heads": 2, "hidden_size": 8})") == "acbdegfh");
  CHECK(
      with_config(R"({"v": {"head_dim": 2}, "a": [{"head_dim": 2}], "head_dim": 4, "v": {"head_dim": 2}})") ==
      "acbdegfh");
  const std::string unknown =
      "kInvalidArgument: memory: tensor 't', rule 't': how many rows make up a head is "
      "not known: " +
      folder.path() +
      "/config.json has neither head_dim nor hidden_size "
      "and num_attention_heads; give it with head_dim";
  CHECK(with_config("{}") == unknown);
  for (const char* const config :
       {"[4]", R"({"head_dim": 0})", R"({"num_attention_heads": 2})", R"({"hidden_size": 8})",
        R"({"head_dim": -4})", R"({"num_attention_heads": 3, "hidden_size": 8})",
        R"({"num_attention_heads": 0, "hidden_size": 8})", R"({"head_dim": 4294967300})"}) {
    CHECK(with_config(config) == unknown);
  }
  CHECK(
      with_config(R"({"head_dim": 2147483647})") ==
      "kInvalidArgument: memory: tensor 't', rule 't': its 8 rows are not whole heads of 2147483647 rows, an "
      "even number");
  CHECK(doctest::String(with_config("{").c_str()) ==
        containing("kCorrupt: " + folder.path() + "/config.json: line 1"));
}

TEST_CASE("rows that are not whole heads, or whose heads are not known, are an error") {
  const std::string place = "kInvalidArgument: memory: tensor 't', rule 't': ";
  const auto not_heads = [&](std::uint32_t head_dim) {
    return place + "its 6 rows are not whole heads of " + std::to_string(head_dim) + " rows, an even number";
  };
  for (const std::uint32_t head_dim : {0U, 3U, 4U, 12U}) {
    CHECK(made_of(kInterleave, byte_tensor("t", {6}), {head_dim}) == not_heads(head_dim));
  }
  const TemporaryFolder folder;
  Checkpoint checkpoint;
  checkpoint.files = {folder / "model.safetensors"};
  checkpoint.tensors = {byte_tensor("t", {8})};
  CHECK(error_of(apply(rules_of(kInterleave), checkpoint)) ==
        exactly(place + "how many rows make up a head is not known: " + folder.path() +
                "/config.json is not there; give it with head_dim"));
}

TEST_CASE("two tensors that would get one name are an error that names both, and change nothing") {
  for (const auto* const json : {R"({"a": "c", "b": "c"})", R"({"a": "b"})", R"({"b": "a"})"}) {
    Checkpoint checkpoint = checkpoint_of({"a", "b"});
    const auto report = apply(rules_of(json), checkpoint);
    CHECK(error_of(report) ==
          containing("kInvalidArgument: tensors 'a' of memory and 'b' of memory would both be named '"));
    CHECK(names_of(checkpoint) == "a b");
  }
  Checkpoint checkpoint = checkpoint_of({"a"});
  CHECK(error_of(apply(rules_of(R"({"a": ["x", "x"]})"), checkpoint)) ==
        containing("would both be named 'x'"));
  CHECK(renamed(R"({"a": ["x", "y"], "b": "z"})", {"a", "b", "a"}) == "x y z x y");
}

TEST_CASE("what is not an object of rules is an error with its line") {
  struct Case {
    const char* json;
    const char* message;
  };
  for (const Case& bad : std::vector<Case>{
           {"", "kUnsupported: memory: is empty"},
           {"{", "kCorrupt: memory: line 1: not JSON"},
           {R"({"a": 1})", "rule 'a': expected a name, null, a list of names or an object, found an integer"},
           {R"({"a": []})", "rule 'a': a list of names has none"},
           {R"({"a": [null]})", "rule 'a': expected a name or an object, found null"},
           {R"({"a": ["b", ["c"]]})", "rule 'a': expected a name or an object, found an array"},
           {R"({"a": {"unless": "b"}})", "rule 'a': a target needs a key"},
           {R"({"a": {"key": "b", "unless": null}})", "rule 'a': expected a string, found null"},
           {R"({"a": {"key": "b", "interleave_rope": 1}})", "rule 'a': expected true or false"},
           {R"({"a": {"key": "b", "key": "c"}})", "rule 'a': 'key' comes twice"},
           {R"({"a": {"key": "b", "rows": 1}})",
            "rule 'a': expected key, unless, interleave_rope, or split alone; found 'rows'"},
           {R"({"a": {"split": ["b"], "key": "c"}})",
            "rule 'a': expected the end of the object, found a key"},
           {R"({"a": {"key": "c", "split": ["b"]}})", "or split alone; found 'split'"},
           {R"({"a": {"split": [{"split": ["b"]}]}})",
            "expected key, unless, interleave_rope, rows; found 'split'"},
           {R"({"a": {"split": "b"}})", "rule 'a': expected an array, found a string"},
           {R"({"a": {"split": [{"key": "b", "rows": -1}]}})",
            "rule 'a': expected a number of rows or \"columns\", found an integer"},
           {R"({"a": {"split": [{"key": "b", "rows": "all"}]}})",
            "rule 'a': expected a number of rows or \"columns\", found a string"},
           {R"({"a.*": "b.*.*"})", "rule 'a.*': a name has more '*' than the pattern it is for"},
           {R"({"a.*": {"key": "b", "unless": "*.*"}})", "rule 'a.*': a name has more '*'"},
           {R"({"**.a.**": "*.*"})", "rule '**.a.**': expected at most one '**' in a pattern, found 2"},
           {"{\n\"a\": \"b\",\n\"a\": \"c\"}", "kInvalidArgument: memory: line 3: rule 'a': it comes twice"},
       }) {
    CAPTURE(bad.json);
    CHECK(error_of(RenameRules::read(source_of(bad.json))) == containing(bad.message));
  }
  CHECK(error_of(RenameRules::read(repeated(' ', (std::uint64_t{64} << 20) + 1))) ==
        containing("kTooLarge: fill: expected rules of at most 64.0 MiB, found 64.0 MiB"));
  CHECK(error_of(RenameRules::read(failing(std::uint64_t{64} << 20, 0))) ==
        containing("the disk is on fire"));
}

// tests/peer/test_ready_made_rules.py compares the names and weights with ExecuTorch's own conversion.
TEST_CASE("each ready-made map sees through wrappers, and leaves out what old checkpoints have") {
  for (const std::string wrapper : {"state_dict.module._orig_mod.", "base_model.model.", "language_model."}) {
    Checkpoint wrapped = checkpoint_of(
        {wrapper + "model.embed_tokens.weight", wrapper + "lm_head.weight", wrapper + "model.norm.weight",
         wrapper + "model.language_model.layers.0.mlp.up_proj.weight", "vision_tower.layers.0.mlp.w"});
    REQUIRE(apply(RenameRules::ready_made("gemma3").value(), wrapped));
    CHECK(names_of(wrapped) ==
          "tok_embeddings.weight output.weight norm.weight layers.0.feed_forward.w3.weight "
          "vision_tower.layers.0.mlp.w");
  }
  Checkpoint old = checkpoint_of({"model.layers.0.self_attn.rotary_emb.inv_freq", "model.norm.weight"});
  REQUIRE(apply(RenameRules::ready_made("llama").value(), old));
  CHECK(names_of(old) == "norm.weight");
  CHECK(code_of(RenameRules::ready_made("")) == "kNotFound");
}

TEST_CASE("a ready-made map is refused beside a config.json of a model that it is not for") {
  struct Row {
    std::string rules;
    std::string config;
    std::string error;
  };
  const TemporaryFolder folder;
  const std::string path = folder / "config.json";
  const std::string at = "kInvalidArgument: " + path + ": expected model_type ";
  for (const Row& row : std::vector<Row>{
           {"smollm2", R"({"model_type": "llama"})", "no error"},
           {"llama", R"({"hidden_size": 8})", "no error"},
           {"qwen3", R"({"text_config": {"model_type": "llama"}})", "no error"},
           {"qwen3", R"({"model_type": "llama"})",
            at + "'qwen3', which the ready-made rules are for, found 'llama'; give the rules llama or "
                 "smollm2"},
           {"smollm3", R"({"model_type": "gpt2"})",
            at + "'smollm3', which the ready-made rules are for, found 'gpt2'; give a file of rules for it"},
       }) {
    CAPTURE(row.rules);
    CAPTURE(row.config);
    put_file(path, row.config);
    Checkpoint checkpoint = checkpoint_of({"model.norm.weight"});
    checkpoint.files = {folder / "model.safetensors"};
    CHECK(error_of(apply(RenameRules::ready_made(row.rules).value(), checkpoint)) == exactly(row.error));
    CHECK(apply(rules_of(R"({"**": "b"})"), checkpoint));
  }
}

}  // namespace
}  // namespace etstream
