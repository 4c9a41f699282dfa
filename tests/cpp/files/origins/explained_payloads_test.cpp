// SPDX-License-Identifier: BSD-3-Clause
#include "files/origins/explained_payloads.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/text.h"
#include "files/origins/made_network.h"
#include "files/origins/weight_free.h"
#include "formats/tensor/converted_floats.h"
#include "test_errors.h"

namespace etstream::explained_payloads_test {
namespace {

using made::Place;

/// Returns the origins of a program's payloads, whose data files these are.
WeightOrigins explained(const made::Program& program, Checkpoint checkpoint, const std::string& data = "") {
  std::vector<TensorDataFile> files;
  if (!data.empty()) files.push_back(made::opened_data(data));
  std::vector<const TensorDataFile*> all;
  for (const TensorDataFile& file : files) all.push_back(&file);
  const auto payloads = explain_payloads(made::opened(made::file(program)), all, checkpoint);
  REQUIRE_MESSAGE(payloads, full_message(payloads.error()));
  return origins_of(*payloads, checkpoint);
}

/// Describes a payload's origin: "a, transposed; or b; or the number 0 everywhere; near c".
std::string described(const PayloadOrigin& origin) {
  std::string out;
  for (const TensorOrigin& tensor : origin.tensors) {
    out += (out.empty() ? "" : "; then ") + tensor.tensor;
    for (const std::string& step : tensor.steps) out += ", " + step;
  }
  for (const std::string& other : origin.equals) out += "; or " + other;
  if (!origin.constant.empty()) out += (out.empty() ? "" : "; or ") + origin.constant;
  for (const std::string& near : origin.nearest) out += "; near " + near;
  return out;
}

std::string lines(const WeightOrigins& origins) {
  std::string out;
  for (const PayloadOrigin& each : origins.payloads) out += described(each) + "\n";
  return out;
}

Checkpoint of_tensors(std::vector<CheckpointTensor> tensors) { return {{}, std::move(tensors)}; }

TEST_CASE("each payload of a network is explained, scales by their integers and biases by both") {
  const Checkpoint weights = made::checkpoint(1);
  const WeightOrigins origins = explained(made::program_of(weights), weights, made::data_of(weights));
  CHECK(
      exactly(lines(origins)) ==
      exactly("table\n"
              "state\n"
              "outside\n"
              "numbers from 0 in steps of 1\n"
              "first.weight, quantized to integers from -8 to 7, 16 a scale\n"
              "first.weight, the scales of integers from -8 to 7, 16 a scale, cast to bfloat16\n"
              "first.bias\n"
              "second.weight, quantized to integers from -127 to 127, 8 a scale\n"
              "second.bias, quantized to integers of 32 bits, by the weights' scales and that of the input, "
              "0.0625\n"
              "calibrated with data\n"
              "second.weight, the scales of integers from -127 to 127, 8 a scale\n"
              "second.bias, the scales of integers of 32 bits, by the weights' scales and that of the input, "
              "0.0625\n"));
  CHECK(origins.are_explained());
  CHECK(origins.unused == std::vector<std::string>{"unused.weight"});
  // Tensors that happen to be equal to what follows from others explain nothing.
  Checkpoint more = weights;
  for (std::size_t i = 8; i < origins.payloads.size(); ++i) {
    const ScalarType type = i == 8 ? ScalarType::kInt32 : ScalarType::kFloat32;
    const std::string bytes = text_of(origins.payloads[i].data);
    more.tensors.push_back(made::tensor(text("copy {}", i), {i == 8 ? 2 : 1}, bytes, type));
  }
  CHECK(exactly(lines(explained(made::program_of(weights), more, made::data_of(weights)))) ==
        exactly(lines(origins)));
}

TEST_CASE("a tensor that can't be quantized as a bias is none, and others are still found") {
  Checkpoint weights = made::checkpoint(1);
  const made::Program program = made::program_of(weights);
  const std::string data = made::data_of(weights);
  const std::vector<float> nans(2, std::numeric_limits<float>::quiet_NaN());
  weights.tensors.insert(weights.tensors.begin(), made::tensor("nan", {2}, made::bytes_of_numbers(nans)));
  CHECK(explained(program, weights, data).are_explained());
}

TEST_CASE("what another checkpoint does not explain has the nearest tensors named") {
  const Checkpoint weights = made::checkpoint(1);
  const WeightOrigins origins =
      explained(made::program_of(weights), made::checkpoint(2), made::data_of(weights));
  CHECK(exactly(lines(origins)) == exactly("; near table\n; near state\n; near outside\n"
                                           "numbers from 0 in steps of 1\n"
                                           "; near first.weight\n"
                                           "; near second.weight\n"
                                           "; near first.bias\n"
                                           "; near second.weight\n"
                                           "; near second.bias\n"
                                           "calibrated with data\n"
                                           "\n"
                                           "\n"));
  CHECK_FALSE(origins.are_explained());
}

TEST_CASE("the nearest tensors come first, and at most three of them") {
  std::vector<float> base = made::numbers(64, 1);
  const auto scaled = [&](const std::string& name, float by, float plus) {
    std::vector<float> out = base;
    for (float& each : out) each = each * by + plus;
    return made::tensor(name, {64}, made::bytes_of_numbers(out));
  };
  CheckpointTensor opaque = scaled("opaque", 1, 0);
  opaque.layout.reset();
  std::vector<float> first = base;
  first[0] += 100;
  std::vector<float> twice = base;
  twice.insert(twice.end(), base.begin(), base.end());
  const Checkpoint all =
      of_tensors({opaque, scaled("far", 1, 8), scaled("near", 1, 0.25F), scaled("farther", 1, 16),
                  scaled("negative", -1, 0), made::tensor("first", {64}, made::bytes_of_numbers(first)),
                  made::tensor("twice", {128}, made::bytes_of_numbers(twice)),
                  made::tensor("short", {2}, made::floats(2, 4))});
  made::Program program;
  program.constants = {{made::bytes_of_numbers(base), {64}}};
  CHECK(lines(explained(program, all)) == "; near near; near negative; near first\n");
  // Only so many payloads are compared.
  program.constants.clear();
  std::string expected;
  for (std::uint64_t i = 0; i < 101; ++i) {
    program.constants.push_back({made::floats(2, 100 + i), {2}});
    expected += i < 100 ? "; near short\n" : "\n";
  }
  CHECK(lines(explained(program, all)) == expected);
}

TEST_CASE("integers of an embedding are explained if their scales are among the payloads") {
  const Checkpoint all = of_tensors({made::tensor("w", {4, 32}, made::floats(128, 1))});
  Quantization how = {32, -8, 7, std::numeric_limits<float>::min()};
  how.high_is_first = true;
  const std::string integers = made::bytes_after(all, 0, {QuantizeStep{how}});
  const std::string scales = made::bytes_after(all, 0, {ScalesStep{how}});
  made::Program program;
  program.constants = {{scales, {4}}, {integers, {4, 16}, "", ScalarType::kUInt8}};
  program.delegates = {{"OtherBackend", "compiled"}};
  CHECK(lines(explained(program, all)) ==
        "w, the scales of integers from -8 to 7, 32 a scale\n"
        "w, quantized to integers from -8 to 7, 32 a scale\n\n");
  program.constants[0].bytes = made::floats(4, 9);
  CHECK(lines(explained(program, all)) == "\n; near w\n\n");
  // Their bytes are no scales as integers.
  program.constants[0] = {scales, {4}, "", ScalarType::kInt32};
  CHECK(lines(explained(program, all)) == "\n; near w\n\n");
}

/// Two equal tensors, and a program that has their bytes so often, under these names.
WeightOrigins with_equals(const std::vector<std::string>& tensors, const std::vector<std::string>& names) {
  Checkpoint all;
  for (const std::string& name : tensors) all.tensors.push_back(made::tensor(name, {4}, made::floats(4, 1)));
  made::Program program;
  for (const std::string& name : names) program.constants.push_back({made::floats(4, 1), {4}, name});
  return explained(program, all);
}

TEST_CASE("of equal tensors, the one of a payload's name is meant") {
  CHECK(lines(with_equals({"a", "b"}, {"b"})) == "b; or a\n");
  CHECK(lines(with_equals({"a", "b"}, {"b", "a"})) == "b; or a\na; or b\n");
}

TEST_CASE(
    "which of equal tensors is meant stays open where names do not say it, however many payloads there are") {
  for (const std::size_t payloads : {1U, 2U, 3U}) {
    const WeightOrigins origins = with_equals({"b", "a", "c"}, std::vector<std::string>(payloads));
    std::string expected;
    for (std::size_t i = 0; i < payloads; ++i) expected += "b; or a; or c\n";
    CHECK(lines(origins) == expected);
    CHECK(origins.are_explained());
    CHECK(origins.unused.empty());
  }
}

TEST_CASE("zeros and ones may be a tensor or need none, unless the tensor's name is the payload's") {
  const std::string ones = made::bytes_of_numbers(std::vector<float>(4, 1));
  const Checkpoint all = of_tensors({made::tensor("norm.weight", {4}, ones)});
  made::Program program;
  program.constants = {{ones, {4}}};
  CHECK(lines(explained(program, all)) == "norm.weight; or the number 1 everywhere\n");
  program.constants[0].name = "norm.weight";
  CHECK(lines(explained(program, all)) == "norm.weight\n");
  program.constants = {{made::bytes_of_numbers(std::vector<float>{0.5F}), {1}}};
  CHECK(lines(explained(program, of_tensors({}))) == "the number 0.5\n");
  const auto half = [](std::int32_t count, float number) {
    const std::vector<float> numbers(static_cast<std::size_t>(count), number);
    return made::tensor("half", {count}, made::bytes_of_numbers(numbers));
  };
  CHECK(lines(explained(program, of_tensors({half(1, 0.5F)}))) == "half; or the number 0.5\n");
  program.constants = {{text_of(half(4, 0.5F).data), {4}}};
  CHECK(lines(explained(program, of_tensors({half(4, 0.5F)}))) == "half\n");
  program.constants = {{text_of(half(4, 0).data), {4}}};
  CHECK(lines(explained(program, of_tensors({half(4, 0)}))) == "half; or the number 0 everywhere\n");
}

TEST_CASE("a bias that no tensor gives is weights, however few numbers it has, unless it is zeros") {
  using namespace made_xnnpack;   // NOLINT: their names are what this is about
  using namespace xnnpack_graph;  // NOLINT
  const Checkpoint all = of_tensors({made::tensor("w", {1, 4}, made::floats(4, 1))});
  for (const float number : {0.5F, 0.0F}) {
    XNNGraphT graph = empty_graph();
    add_value(graph, tensor_of(1, XNNDatatype_xnn_datatype_fp32, {1, 4}, add_inner_constant(graph, 0, 16)));
    add_value(graph, tensor_of(2, XNNDatatype_xnn_datatype_fp32, {1}, add_inner_constant(graph, 16, 4)));
    add_linear(graph, 1, 2, 9);
    made::Program program;
    const std::string bias = made::bytes_of_numbers(std::vector<float>{number});
    program.delegates = {{"XnnpackBackend", payload_of(graph, made::floats(4, 1) + bias)}};
    CHECK(lines(explained(program, all)) == (number == 0 ? "w\nthe number 0\n" : "w\n\n"));
  }
}

/// The numbers of a batch norm of two channels.
struct Norm {
  std::vector<float> mean;
  std::vector<float> variance;
  std::vector<float> weight;
  std::vector<float> bias;
};

/// The four tensors of a norm come one after another, from `first` on, as add_norm() adds them.
NormStep step_of(std::size_t first, NormStep::Part part, float epsilon = 1e-5F) {
  return {.part = part,
          .mean = first,
          .variance = first + 1,
          .weight = first + 2,
          .bias = first + 3,
          .epsilon = epsilon,
          .has_bias = false};
}

std::string epsilon_of(const NormStep& norm) {
  return text("{} millionths", std::lround(norm.epsilon * 1e6F));
}

void add_norm(Checkpoint& to, const std::string& name, const Norm& norm) {
  const auto add = [&](const std::string& part, const std::vector<float>& numbers) {
    to.tensors.push_back(made::tensor(name + part, {2}, made::bytes_of_numbers(numbers)));
  };
  add(".running_mean", norm.mean);
  add(".running_var", norm.variance);
  add(".weight", norm.weight);
  add(".bias", norm.bias);
}

/// A norm that gives the same bias with each epsilon, and as a convolution too: it computes without rounding.
/// Its bias is that of the weights before it, 1 - 3 and 2 + 10.
const Norm kExactNorm = {{0x1p20F, -0x1p21F}, {0x1p40F, 0x1p40F}, {3, 5}, {1, 2}};

/// Describes the ways to the bias that a node adds behind these weights, of these sizes, a line each.
std::string ways_to_bias(const Checkpoint& checkpoint, const std::vector<std::uint32_t>& sizes,
                         const std::string& weights, const std::string& bias) {
  using namespace made_xnnpack;   // NOLINT: their names are what this is about
  using namespace xnnpack_graph;  // NOLINT
  XNNGraphT graph = empty_graph();
  add_value(graph,
            tensor_of(1, XNNDatatype_xnn_datatype_fp32, sizes, add_inner_constant(graph, 0, weights.size())));
  add_value(graph, tensor_of(2, XNNDatatype_xnn_datatype_fp32, {2},
                             add_inner_constant(graph, weights.size(), bias.size())));
  if (sizes.size() == 2) {
    add_linear(graph, 1, 2, 9);
  } else {
    add_convolution(graph, 1, 2, 9);
  }
  made::Program program;
  program.delegates = {{"XnnpackBackend", payload_of(graph, weights + bias)}};
  Checkpoint known = checkpoint;
  const auto payloads = explain_payloads(made::opened(made::file(program)), {}, known);
  REQUIRE_MESSAGE(payloads, full_message(payloads.error()));
  REQUIRE(payloads->size() == 2);
  CHECK_FALSE((*payloads)[0].pieces.empty());
  std::string out;
  for (const WeightPiece& way : (*payloads)[1].pieces) {
    REQUIRE(way.steps.steps.size() == 1);
    const auto& norm = std::get<NormStep>(way.steps.steps[0]);
    const char* const part = norm.part == NormStep::Part::kBias         ? "bias"
                             : norm.part == NormStep::Part::kLinearBias ? "linear bias"
                                                                        : "bias as a convolution";
    out += text("{}: {} by {}, {}\n", checkpoint.tensors[way.steps.tensor].name, part,
                checkpoint.tensors[norm.mean].name, epsilon_of(norm));
  }
  return out;
}

TEST_CASE("a bias has the batch norm of its weights, where another gives it too") {
  // Half the mean and twice the factor make the same bias.
  Checkpoint all;
  add_norm(all, "m", {{0.25F, -0.125F}, {1.5F, 2.25F}, {1.5F, -2.5F}, {0.5F, 1}});
  add_norm(all, "n", {{0.5F, -0.25F}, {1.5F, 2.25F}, {0.75F, -1.25F}, {0.5F, 1}});
  all.tensors.push_back(made::tensor("w", {2, 3}, made::floats(6, 1)));
  const std::string bias = made::bytes_after(all, 0, {step_of(0, NormStep::Part::kLinearBias)});
  CHECK(bias == made::bytes_after(all, 4, {step_of(4, NormStep::Part::kLinearBias)}));
  for (const std::size_t norm : {0U, 4U}) {
    const std::string weights = made::bytes_after(all, 8, {step_of(norm, NormStep::Part::kWeights)});
    CHECK(ways_to_bias(all, {2, 3}, weights, bias) ==
          (norm == 0 ? "m.running_mean: linear bias by m.running_mean, 10 millionths\n"
                     : "n.running_mean: linear bias by n.running_mean, 10 millionths\n"));
  }
}

TEST_CASE("a bias has the epsilon of its weights, where another gives it too") {
  // The first channel has no mean, and the variance of the second is so large that no epsilon counts.
  Checkpoint all;
  add_norm(all, "n", {{0, 0.5F}, {0.01F, 1e8F}, {0.75F, -1.25F}, {0.5F, 0}});
  all.tensors.push_back(made::tensor("w", {2, 3}, made::floats(6, 1)));
  for (const float epsilon : {1e-5F, 1e-3F, 2e-5F}) {
    const std::string weights = made::bytes_after(all, 4, {step_of(0, NormStep::Part::kWeights, epsilon)});
    const std::string bias = made::bytes_after(all, 0, {step_of(0, NormStep::Part::kLinearBias)});
    CHECK(bias == made::bytes_after(all, 0, {step_of(0, NormStep::Part::kLinearBias, epsilon)}));
    CHECK(ways_to_bias(all, {2, 3}, weights, bias) ==
          text("n.running_mean: linear bias by n.running_mean, {}\n", epsilon_of(step_of(0, {}, epsilon))));
  }
}

TEST_CASE(
    "a bias is that of a linear layer, of a convolution, or of a norm that became one, as its weights") {
  Checkpoint all;
  add_norm(all, "n", kExactNorm);
  all.tensors.push_back(made::tensor("linear", {2, 3}, made::floats(6, 1)));
  all.tensors.push_back(made::tensor("convolution", {2, 3, 1, 1}, made::floats(6, 2)));
  const std::string bias = made::bytes_of_numbers(std::vector<float>{-2, 12});
  const auto weights = [&](std::size_t tensor, NormStep::Part part) {
    return made::bytes_after(all, tensor, {step_of(0, part)});
  };
  const auto with_each_epsilon = [](const std::string& way) {
    std::string out;
    for (const int epsilon : {1, 10, 20, 100, 1000}) out += text("{}, {} millionths\n", way, epsilon);
    return out;
  };
  CHECK(ways_to_bias(all, {2, 3}, weights(4, NormStep::Part::kWeights), bias) ==
        with_each_epsilon("n.running_mean: linear bias by n.running_mean"));
  CHECK(ways_to_bias(all, {2, 1, 1, 3}, weights(5, NormStep::Part::kWeights), bias) ==
        with_each_epsilon("n.running_mean: bias by n.running_mean"));
  CHECK(ways_to_bias(all, {1, 1, 1, 2}, weights(2, NormStep::Part::kAsConvolution), bias) ==
        with_each_epsilon("n.bias: bias as a convolution by n.running_mean"));
}

TEST_CASE("a bias has no batch norm behind weights without one") {
  Checkpoint all;
  add_norm(all, "n", kExactNorm);
  all.tensors.push_back(made::tensor("w", {2, 3}, made::floats(6, 1)));
  CHECK(ways_to_bias(all, {2, 3}, made::floats(6, 1), made::bytes_of_numbers(std::vector<float>{-2, 12}))
            .empty());
}

TEST_CASE("a payload of no elements needs no weights") {
  made::Program program;
  program.constants = {{"", {0}, "empty", ScalarType::kFloat32, Place::kExternal}};
  const std::string data = made::tensor_data({{"", {0}, "empty"}});
  CHECK(lines(explained(program, of_tensors({made::tensor("none", {0}, "")}), data)) == "no elements\n");
}

TEST_CASE("integers may be a tensor, and data without a layout is nothing that is known") {
  const std::string integers = made::bytes_of_numbers(std::vector<std::int32_t>{5, 9, 2});
  made::Program program;
  program.constants = {{integers, {3}, "", ScalarType::kInt32}};
  program.named_data = {{"k", "bytes"}};
  CHECK(lines(explained(program, of_tensors({made::tensor("t", {3}, integers, ScalarType::kInt32)}))) ==
        "t\n\n");
}

TEST_CASE("what another backend compiled is not explained, whatever it looks like") {
  made::Program program;
  program.delegates = {{"OtherBackend", made::floats(4, 1)}};
  const WeightOrigins origins = explained(program, of_tensors({made::tensor("w", {4}, made::floats(4, 1))}));
  CHECK(lines(origins) == "\n");
  CHECK_FALSE(origins.are_explained());
  CHECK(origins.unused == std::vector<std::string>{"w"});
}

TEST_CASE("integers come near the tensor that they follow, whatever their scales") {
  const Checkpoint all = of_tensors({made::tensor("other", {8, 32}, made::floats(256, 2)),
                                     made::tensor("w", {8, 32}, made::floats(256, 1))});
  Quantization how = {32, -8, 7, 0.3F};  // as the least scale, which no quantizer has
  how.high_is_first = true;
  made::Program program;
  program.constants = {{made::bytes_after(all, 1, {QuantizeStep{how}}), {8, 16}, "", ScalarType::kUInt8}};
  how = {256, -100, 100, 0};
  program.constants.push_back(
      {made::bytes_after(all, 1, {QuantizeStep{how}}), {8, 32}, "", ScalarType::kInt8});
  CHECK(lines(explained(program, all)) == "; near w; near other\n; near w; near other\n");
}

TEST_CASE("inverse frequencies are computed by the config, or else found by their bytes") {
  const TemporaryFolder folder;
  Checkpoint all = of_tensors({made::tensor("w", {4}, made::floats(4, 1))});
  all.files = {folder / "model.safetensors"};
  const auto by = [&](const std::string& theta) {
    put_file(folder / "config.json", text(R"({{"head_dim": 64, "rope_theta": {}}})", theta));
  };
  by("10000");
  const auto known = read_frequencies(all);
  const ByteSource data = (**known).at(0).data;
  const auto halves = convert_floats(data, ScalarType::kFloat32, ScalarType::kBFloat16);
  const std::string bytes = text_of(data);
  made::Program program;
  program.constants = {{bytes, {1, 32, 1}}, {text_of(*halves), {32}, "", ScalarType::kBFloat16}};
  const std::string found =
      "inverse frequencies of RoPE; or inverse frequencies of RoPE, 0 of 32 in vectors\n";
  const WeightOrigins origins = explained(program, all);
  CHECK(lines(origins).starts_with(found + "inverse frequencies of RoPE, cast to bfloat16"));
  CHECK(origins.unused == std::vector<std::string>{"w"});
  by("500000");
  CHECK(lines(explained(program, all)) == "\n\n");
  put_file(folder / "config.json", "{}");
  program.constants.pop_back();
  CHECK(lines(explained(program, all)) == found);
  for (const std::size_t at : {0U, 60U, 124U}) {  // a bit of the first, a middle and the last one
    program.constants[0].bytes = bytes;
    program.constants[0].bytes[at] = static_cast<char>(bytes[at] ^ 1);
    CHECK(lines(explained(program, all)) == "\n");
    by("10000");
    CHECK(lines(explained(program, all)) == "\n");
    put_file(folder / "config.json", "{}");
  }
}

TEST_CASE("the head of a model's config says which rows are interleaved") {
  const TemporaryFolder folder;
  const Checkpoint plain = of_tensors({made::tensor("q", {16, 4}, made::floats(64, 1))});
  made::Program program;
  program.constants = {{made::bytes_after(plain, 0, {InterleaveRopeStep{4}}), {16, 4}}};
  Checkpoint all = plain;
  all.files = {folder / "model.safetensors"};
  put_file(folder / "config.json", R"({"head_dim": 4})");
  CHECK(lines(explained(program, all)) == "q, rows of heads of 4 interleaved for rotary embeddings\n");
  put_file(folder / "config.json", R"({"head_dim": 8})");
  CHECK(lines(explained(program, all)) == "; near q\n");
  // Without a config, heads are of usual sizes, of which 4 is none.
  CHECK(lines(explained(program, plain)) == "; near q\n");
  program.constants = {{made::bytes_after(plain, 0, {InterleaveRopeStep{16}}), {16, 4}}};
  for (const char* config : {"{}", R"({"head_dim": 0})", R"({"head_dim": 3})"}) {
    put_file(folder / "config.json", config);
    CHECK(lines(explained(program, all)) == "q, rows of heads of 16 interleaved for rotary embeddings\n");
  }
  for (const std::int32_t head : {8, 16, 32, 48, 64, 80, 96, 112, 128, 192, 256}) {
    const Checkpoint one =
        of_tensors({made::tensor("q", {head, 1}, made::floats(static_cast<std::size_t>(head), 1))});
    const InterleaveRopeStep step{static_cast<std::uint32_t>(head)};
    program.constants = {{made::bytes_after(one, 0, {step}), {head, 1}}};
    CHECK(lines(explained(program, one)) == text("q, {}\n", describe(step)));
  }
}

}  // namespace
}  // namespace etstream::explained_payloads_test
