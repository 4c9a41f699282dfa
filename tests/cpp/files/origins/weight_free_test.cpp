// SPDX-License-Identifier: BSD-3-Clause
#include "files/origins/weight_free.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/base/text.h"
#include "files/origins/made_network.h"
#include "formats/tensor/converted_floats.h"
#include "test_errors.h"
#include "test_files.h"

namespace etstream::weight_free_test {
namespace {

using made::bytes_of_numbers;
using made::layout_of;

template <class Number>
std::string described(ScalarType type, const std::vector<Number>& numbers, std::vector<std::int32_t> sizes) {
  const auto out =
      describe_weight_free(source_of(bytes_of_numbers(numbers)), layout_of(type, std::move(sizes)));
  REQUIRE_MESSAGE(out, full_message(out.error()));
  return *out;
}

template <class Number>
std::string described(ScalarType type, const std::vector<Number>& numbers) {
  return described(type, numbers, {static_cast<std::int32_t>(numbers.size())});
}

std::string described_floats(const std::vector<float>& numbers) {
  return described(ScalarType::kFloat32, numbers);
}

TEST_CASE("one number, and one that is everywhere") {
  CHECK(described_floats({0.125F}) == "the number 0.125");
  CHECK(described_floats({0, 0, 0}) == "the number 0 everywhere");
  CHECK(described_floats(std::vector<float>(20000, 1.0F)) == "the number 1 everywhere");
  CHECK(described<std::int64_t>(ScalarType::kInt64, {7}) == "the number 7");
  CHECK(described<std::uint8_t>(ScalarType::kBool, {1, 1}) == "the number 1 everywhere");
  CHECK(described<std::uint16_t>(ScalarType::kBFloat16, {0x3f80, 0x3f80}) == "the number 1 everywhere");
  CHECK(described<std::int8_t>(ScalarType::kInt8, {-3, -3}) == "the number -3 everywhere");
  CHECK(described<double>(ScalarType::kFloat64, {2.5, 2.5}) == "the number 2.5 everywhere");
  // The last of many is another.
  std::vector<float> almost(20000, 0.5F);
  almost.back() = 0.25F;
  CHECK(described_floats(almost).empty());
}

TEST_CASE("a sequence of integers") {
  CHECK(described<std::int64_t>(ScalarType::kInt64, {0, 1, 2, 3}) == "numbers from 0 in steps of 1");
  CHECK(described<std::int32_t>(ScalarType::kInt32, {5, 2, -1, -4}) == "numbers from 5 in steps of -3");
  CHECK(described<std::int16_t>(ScalarType::kInt16, {300, 600, 900}) == "numbers from 300 in steps of 300");
  CHECK(described_floats({0, 1, 2, 3}) == "numbers from 0 in steps of 1");
  CHECK(described_floats({0, 0.5F, 1, 1.5F}).empty());
  CHECK(described_floats({0, 1, 2, 4}).empty());
  // Whatever else has 64 bits is no weight.
  CHECK(described<std::int64_t>(ScalarType::kInt64, {0, 1, 2, 4}) == "integers of 64 bits");
  CHECK(described<std::int32_t>(ScalarType::kInt32, {0, 1, 2, 4}).empty());
}

TEST_CASE("a mask") {
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK(described_floats({0, -infinity, 0, 0}) == "a mask of 0 and -inf");
  CHECK(described_floats({1, 0, 1, 1}) == "a mask of 1 and 0");
  CHECK(described_floats({0, -65504, 0, 0}) == "a mask of 0 and -65504");
  CHECK(described<std::uint8_t>(ScalarType::kBool, {0, 1, 1}) == "a mask of 0 and 1");
  CHECK(described<std::int32_t>(ScalarType::kInt32, {9, -4, 9}) == "a mask of 9 and -4");
  // Two numbers that no mask has may be weights, and so may three.
  CHECK(described_floats({0.5F, 0, 0.5F}).empty());
  CHECK(described_floats({0, 1, -infinity}).empty());
  CHECK(described_floats({0, 0.5F, 0}).empty());
  CHECK(described_floats({0, 60000, 0}) == "a mask of 0 and 60000");
  CHECK(described_floats({0, 59999, 0}).empty());
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(described_floats({nan, nan}).empty());
  CHECK(described_floats({nan}).empty());
  CHECK(described(ScalarType::kFloat32, std::vector<float>{nan}, {}).empty());
}

/// A table of positions as models have it: a row for each, a column for each frequency.
std::vector<float> table(int rows, int columns, double (*function)(double), double scale = 1) {
  std::vector<float> out;
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      const double frequency = 1 / std::pow(10000.0, static_cast<double>(j) / columns);
      out.push_back(static_cast<float>(scale * function(i * frequency)));
    }
  }
  return out;
}

std::string described_table(const std::vector<float>& numbers, std::int32_t columns,
                            ScalarType type = ScalarType::kFloat32) {
  const auto as_type =
      convert_floats(source_of(bytes_of_numbers(numbers)), ScalarType::kFloat32, type).value();
  const auto rows = static_cast<std::int32_t>(numbers.size()) / columns;
  const auto out = describe_weight_free(as_type, layout_of(type, {rows, columns}));
  REQUIRE_MESSAGE(out, full_message(out.error()));
  return *out;
}

TEST_CASE("tables of the cosines or sines of positions") {
  for (const ScalarType type : {ScalarType::kFloat32, ScalarType::kBFloat16, ScalarType::kFloat16}) {
    CHECK(described_table(table(128, 32, std::cos), 32, type) == "cosines of positions");
    CHECK(described_table(table(128, 32, std::sin), 32, type) == "sines of positions");
    CHECK(described_table(table(2048, 8, std::cos), 8, type) == "cosines of positions");
    CHECK(described_table(table(2048, 8, std::sin), 8, type) == "sines of positions");
  }
}

TEST_CASE("a table of positions has 1 to 65536 columns, and 4 rows or more") {
  CHECK(described_table(table(4, 65536, std::cos), 65536) == "cosines of positions");
  CHECK(described_table(table(4, 65537, std::cos), 65537).empty());
  CHECK(described_table(table(8, 1, std::cos), 1) == "cosines of positions");
  CHECK(described(ScalarType::kFloat32, table(8, 1, std::cos), {0}).empty());
}

TEST_CASE("a trained table is none of positions") {
  CHECK(described_table(made::numbers(1024, 3), 8).empty());
  // Nor is one that training has moved, or that does not begin at position 0.
  std::vector<float> moved = table(128, 8, std::cos);
  moved[900] += moved[900] > 0 ? -0.2F : 0.2F;
  CHECK(described_table(moved, 8).empty());
  std::vector<float> beyond = table(128, 8, std::cos);
  beyond[44 * 8] += 0.03F;  // which was 0.9998
  CHECK(described_table(beyond, 8).empty());
  std::vector<float> sines = table(128, 8, std::sin);
  sines[3] = 0.01F;
  CHECK(described_table(sines, 8).empty());
  CHECK(described_table(table(128, 8, std::cos, 0.5), 8).empty());
  CHECK(described_table(table(128, 8, std::sin, 2), 8).empty());
  // Few rows are no table.
  CHECK(described_table(table(3, 8, std::cos), 8).empty());
  // Frequencies are at most 1.
  const auto fast = [](double x) { return std::cos(2 * x); };
  CHECK(described_table(table(128, 8, fast), 8).empty());
}

/// Returns the frequencies that a config.json gives, each as "NAME HASH", or "nothing" if it does not say
/// them.
std::vector<std::string> frequencies_by(const std::string& config) {
  const TemporaryFolder folder;
  put_file(folder / "config.json", config);
  const auto found = read_frequencies({{folder / "model.safetensors"}, {}});
  REQUIRE_MESSAGE(found, full_message(found.error()));
  if (!*found) return {"nothing"};
  std::vector<std::string> out;
  for (const CheckpointTensor& each : **found) {
    CHECK(each.layout->sizes == std::vector{static_cast<std::int32_t>(each.data.size() / sizeof(float))});
    out.push_back(text("{} {}", each.name, made::hash_of(text_of(each.data)).substr(0, 16)));
  }
  return out;
}

// The hashes are of LlamaRotaryEmbedding(config).inv_freq: transformers 5.23, torch 2.13, AVX-512.
TEST_CASE("inverse frequencies are those that transformers computes") {
  const std::pair<const char*, const char*> rows[] = {
      {R"({"head_dim": 64, "rope_theta": 10000})", "734f9e6b629f7bac"},
      {R"({"hidden_size": 512, "num_attention_heads": 4, "rope_parameters": {"rope_type": "default", "rope_theta": 1000000.0}})",
       "138c99b109d7affb"},
      {R"({"head_dim": 192, "rope_parameters": {"rope_theta": 123456.789}})", "d924f61fc50695d8"},
      {R"({"head_dim": 64, "rope_theta": 10000.0, "rope_scaling": {"type": "linear", "factor": 3.0}})",
       "64c038dba816f7dd"},
      {R"({"head_dim": 64, "rope_parameters": {"rope_type": "dynamic", "rope_theta": 500000.0, "factor": 2.5}})",
       "74e0a468b5f62fef"},
      {R"({"head_dim": 64, "rope_theta": 500000.0, "rope_scaling": {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}})",
       "db702e51cd2b99ea"},
      {R"({"head_dim": 128, "rope_parameters": {"rope_type": "llama3", "rope_theta": 200000.0, "factor": 8.0, "low_freq_factor": 1.5, "high_freq_factor": 3.0, "original_max_position_embeddings": 4096}})",
       "e05853cd0fab7cb0"},
      {R"({"head_dim": 128, "rope_parameters": {"rope_type": "yarn", "rope_theta": 1000000.0, "factor": 4.0, "original_max_position_embeddings": 32768}})",
       "427ed49dc1d6e186"},
      {R"({"head_dim": 64, "max_position_embeddings": 65536, "rope_parameters": {"rope_type": "yarn", "rope_theta": 10000.0, "factor": null, "original_max_position_embeddings": 4096, "beta_fast": 16, "beta_slow": 2, "truncate": false}})",
       "2187170c63c1f88d"},
      {R"({"head_dim": 8, "original_max_position_embeddings": 512, "rope_scaling": {"type": "longrope", "short_factor": [1, 1.25, 1.5, 3], "long_factor": [2, 3, 4, 5]}, "rope_theta": 10000.0})",
       "b6a6f84dbf1aa03c"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.first);
    const auto found = frequencies_by(row.first);
    CHECK(std::ranges::any_of(found, [&](const std::string& each) {
      return each.starts_with("inverse frequencies of RoPE") && each.ends_with(row.second);
    }));
  }
}

TEST_CASE("frequencies have names by the kind of layers, and by how torch may have computed them") {
  const std::string own = "inverse frequencies of RoPE";
  CHECK(frequencies_by(R"({"head_dim": 80, "text_config": {"head_dim": 128, "hidden_size": 128,
      "rope_theta": 1000000}})") ==
        std::vector<std::string>{own + " 138c99b109d7affb", own + ", 0 of 64 in vectors 237f29de846b1669"});
  const auto of_layers = frequencies_by(R"({"head_dim": 2, "partial_rotary_factor": 8, "rope_parameters": {
      "full": {"rope_type": "default", "rope_theta": 1000}, "sliding": {"rope_type": "default", "rope_theta": 100}}})");
  REQUIRE(of_layers.size() == 4);
  CHECK(of_layers[0].starts_with(own + " of full "));
  CHECK(of_layers[3].starts_with(own + " of sliding, 0 of 8 in vectors "));
  const auto by_default =
      frequencies_by(R"({"head_dim": 64, "rope_scaling": {"factor": 2, "type": "linear"}})");
  CHECK(by_default.at(0).starts_with(own + ", theta 10000 by default "));
}

TEST_CASE("a config of no frequencies says nothing, and one of others has none") {
  CHECK(frequencies_by(R"({"head_dim": 64, "rope_scaling": null})") == std::vector<std::string>{"nothing"});
  for (const char* rope : {R"("head_dim": 64, "rope_parameters": {"rope_type": "new", "rope_theta": 10})",
                           R"("head_dim": 64, "rope_theta": 1)", R"("head_dim": 64, "rope_theta": 1e30)",
                           R"("head_dim": 63, "rope_theta": 10)", R"("head_dim": 1026, "rope_theta": 10)",
                           R"("rope_theta": 10)", R"("head_dim": 0, "rope_theta": 10)",
                           R"("head_dim": 8, "rope_theta": 10, "rope_scaling": {"type": "longrope",
                              "factor": 1, "short_factor": [1]})"}) {
    CAPTURE(rope);
    CHECK(frequencies_by(text("{{{}}}", rope)).empty());
  }
  CHECK_FALSE(read_frequencies({{}, {}}).value());
  const TemporaryFolder folder;
  CHECK_FALSE(read_frequencies({{folder / "model.safetensors"}, {}}).value());
  put_file(folder / "config.json", "no JSON");
  CHECK(code_of(read_frequencies({{folder / "model.safetensors"}, {}})) == exactly("kCorrupt"));
}

TEST_CASE("plain and linear frequencies are found by their bytes") {
  for (const char* rope :
       {R"("rope_theta": 500000)", R"("rope_theta": 1e7, "rope_scaling": {"type": "linear", "factor": 3})"}) {
    const TemporaryFolder folder;
    put_file(folder / "config.json", text(R"({{"head_dim": 128, {}}})", rope));
    const auto known = read_frequencies({{folder / "model.safetensors"}, {}});
    const auto like = frequencies_like((**known).at(0).data);
    REQUIRE(like.value().size() == 2);
    CHECK((text_of(like->at(0).data) == text_of((**known)[0].data)));
    CHECK((text_of(like->at(1).data) == text_of((**known)[1].data)));
  }
  for (const auto& others : {std::vector<float>{},
                             {1},
                             {1, 2},
                             {0, 0},
                             {1, 1},
                             {-1, -2},
                             {0.5F, -0.5F},
                             std::vector<float>(513, 1)}) {
    CHECK(frequencies_like(source_of(bytes_of_numbers(others))).value().empty());
  }
  CHECK(code_of(frequencies_like(failing(16, 8))) == exactly("kIo"));
}

TEST_CASE("what has no numbers here has no description") {
  CHECK(described<std::uint16_t>(ScalarType::kUInt16, {1, 1}).empty());
  CHECK(described_floats({}) == "no elements");
  CHECK(describe_weight_free(source_of("abc"), layout_of(ScalarType::kFloat32, {1})).value().empty());
  const auto failed = describe_weight_free(failing(16, 8), layout_of(ScalarType::kFloat32, {4}));
  CHECK(code_of(failed) == exactly("kIo"));
}

}  // namespace
}  // namespace etstream::weight_free_test
