// SPDX-License-Identifier: BSD-3-Clause
#include "files/origins/origin_search.h"

#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "files/origins/made_network.h"
#include "test_errors.h"

namespace etstream::origin_search_test {
namespace {

using made::bytes_after;
using made::layout_of;

WeightPayload payload_of(std::string bytes, TensorLayout layout) {
  return {.label = "a payload", .name = "", .data = source_of(bytes), .layout = std::move(layout)};
}

std::string described(const Checkpoint& checkpoint, const TensorSteps& steps) {
  std::string out = checkpoint.tensors[steps.tensor].name;
  for (const WeightStep& step : steps.steps) out += ", " + describe(step);
  return out;
}

/// Describes the ways to a payload, a line each; a piece that begins within it goes on in the line of the
/// piece before it: "a, transposed; then b", or "a; then b; or c" where two may be there.
std::string described(const Checkpoint& checkpoint, const std::vector<WeightPiece>& pieces) {
  std::string out;
  std::uint64_t at = 0;
  for (const WeightPiece& piece : pieces) {
    if (piece.at == 0) {
      if (!out.empty()) out += "\n";
    } else {
      out += piece.at == at ? "; or " : "; then ";
    }
    at = piece.at;
    out += described(checkpoint, piece.steps);
  }
  return out.empty() ? out : out + "\n";
}

std::string found(const Checkpoint& checkpoint, const WeightPayload& payload,
                  const WeightPayload* scales = nullptr) {
  OriginSearch search(checkpoint, {8, 4});
  const auto ways = search.find(payload, scales);
  REQUIRE_MESSAGE(ways, full_message(ways.error()));
  return described(checkpoint, *ways);
}

Checkpoint of_tensors(std::vector<CheckpointTensor> tensors) { return {{}, std::move(tensors)}; }

CheckpointTensor random_tensor(const std::string& name, const std::vector<std::int32_t>& sizes,
                               std::uint64_t seed, ScalarType type = ScalarType::kFloat32) {
  std::size_t count = 1;
  for (const std::int32_t size : sizes) count *= static_cast<std::size_t>(size);
  std::string bytes = made::floats(count, seed);
  if (type != ScalarType::kFloat32) {
    bytes = bytes_after(of_tensors({made::tensor(name, sizes, bytes)}), 0, {CastStep{type}});
  }
  return made::tensor(name, sizes, bytes, type);
}

/// Returns the ways to a payload that these steps give of the first tensor.
std::string found_after(const Checkpoint& checkpoint, std::vector<WeightStep> steps, TensorLayout layout) {
  return found(checkpoint, payload_of(bytes_after(checkpoint, 0, std::move(steps)), std::move(layout)));
}

TEST_CASE("a tensor is found as it is, cast, and in other orders") {
  const Checkpoint all = of_tensors({random_tensor("w", {4, 6}, 1), random_tensor("other", {4, 6}, 2),
                                     random_tensor("half", {4, 6}, 3, ScalarType::kBFloat16)});
  CHECK(found_after(all, {}, layout_of(ScalarType::kFloat32, {4, 6})) == "w\n");
  CHECK(found_after(all, {CastStep{ScalarType::kBFloat16}}, layout_of(ScalarType::kBFloat16, {4, 6})) ==
        "w, cast to bfloat16\n");
  CHECK(found_after(all, {PermuteStep{{1, 0}}}, layout_of(ScalarType::kFloat32, {6, 4})) ==
        "w, transposed\n");
  const std::string wide = bytes_after(all, 2, {CastStep{ScalarType::kFloat32}});
  CHECK(found(all, payload_of(wide, layout_of(ScalarType::kFloat32, {24}))) == "half, cast to float32\n");
  // Only the last element differs from a tensor's, or one that is not among the first looked at.
  for (const std::size_t at : {std::size_t{95}, std::size_t{50}}) {
    std::string almost = bytes_after(all, 0, {});
    almost[at] = static_cast<char>(almost[at] ^ 1);
    CHECK(found(all, payload_of(almost, layout_of(ScalarType::kFloat32, {4, 6}))).empty());
  }
  CHECK(found(all, payload_of("", layout_of(ScalarType::kFloat32, {0}))).empty());
  // A size of 0, or a negative one, is no size of 1.
  const std::string turned = bytes_after(all, 0, {PermuteStep{{1, 0}}});
  for (const std::int32_t size : {0, -1}) {
    CHECK(found(all, payload_of(turned, layout_of(ScalarType::kFloat32, {6, 4, size}))).empty());
  }
  CHECK(found(all, payload_of(turned, layout_of(ScalarType::kFloat32, {6, 4, 1}))) == "w, transposed\n");
  // Dimensions in another order are no sizes of a payload.
  CHECK(found(all, payload_of(turned, layout_of(ScalarType::kFloat32, {4, 6}))).empty());
  const Checkpoint byte = of_tensors({made::tensor("byte", {1}, "\1", ScalarType::kInt8)});
  CHECK(found_after(byte, {}, layout_of(ScalarType::kInt8, {1})) == "byte\n");
}

TEST_CASE("a large payload is compared in full") {
  const Checkpoint all = of_tensors({random_tensor("w", {300}, 1)});
  for (const std::size_t at : {std::size_t{0}, std::size_t{400}, std::size_t{640}, std::size_t{1199}}) {
    std::string almost = bytes_after(all, 0, {});
    almost[at] = static_cast<char>(almost[at] ^ 1);
    CHECK(found(all, payload_of(almost, layout_of(ScalarType::kFloat32, {300}))).empty());
  }
  CHECK(found_after(all, {}, layout_of(ScalarType::kFloat32, {300})) == "w\n");
}

TEST_CASE("convolutions are found in XNNPACK's orders") {
  const Checkpoint all =
      of_tensors({random_tensor("w", {6, 4, 3, 2}, 1), random_tensor("d", {6, 1, 3, 2}, 2)});
  CHECK(found_after(all, {PermuteStep{{0, 2, 3, 1}}}, layout_of(ScalarType::kFloat32, {6, 3, 2, 4})) ==
        "w, dimensions in the order [0, 2, 3, 1]\n");
  CHECK(found_after(all, {PermuteStep{{0, 2, 3, 4, 1}, 3}}, layout_of(ScalarType::kFloat32, {12, 3, 2, 2})) ==
        "w, dimensions in the order [0, 2, 3, 4, 1], of 3 groups\n");
  const Checkpoint line = of_tensors({random_tensor("l", {6, 4, 3}, 3)});
  CHECK(found_after(line, {PermuteStep{{0, 2, 3, 1}, 3}}, layout_of(ScalarType::kFloat32, {12, 3, 2})) ==
        "l, dimensions in the order [0, 2, 3, 1], of 3 groups\n");
  CHECK(found_after(line, {PermuteStep{{1, 2, 0}}}, layout_of(ScalarType::kFloat32, {4, 3, 6})) ==
        "l, dimensions in the order [1, 2, 0]\n");
  CHECK(found_after(line, {PermuteStep{{1, 2, 0}}}, layout_of(ScalarType::kFloat32, {4, 3, 0})).empty());
  const Checkpoint matrix = of_tensors({random_tensor("m", {6, 4}, 4)});
  CHECK(found_after(matrix, {PermuteStep{{0, 2, 1}, 3}}, layout_of(ScalarType::kFloat32, {12, 2})).empty());
  const Checkpoint five = of_tensors({random_tensor("f", {2, 3, 4, 5, 6}, 5)});
  CHECK(found_after(five, {PermuteStep{{4, 3, 2, 1, 0}}}, layout_of(ScalarType::kFloat32, {6, 5, 4, 3, 2}))
            .empty());
  // Dimensions of one element need no order.
  const std::string depthwise = bytes_after(all, 1, {PermuteStep{{1, 2, 3, 0}}});
  CHECK(found(all, payload_of(depthwise, layout_of(ScalarType::kFloat32, {1, 3, 2, 6}))) ==
        "d, dimensions in the order [2, 1, 3, 0]\n");
}

TEST_CASE("rows of heads are found interleaved") {
  const Checkpoint all = of_tensors({random_tensor("q", {16, 4}, 1)});
  CHECK(found_after(all, {InterleaveRopeStep{8}}, layout_of(ScalarType::kFloat32, {16, 4})) ==
        "q, rows of heads of 8 interleaved for rotary embeddings\n");
  CHECK(found_after(all, {InterleaveRopeStep{16}}, layout_of(ScalarType::kFloat32, {16, 4})).empty());
  // Rows that are all the same may be in any order.
  const Checkpoint zeros = of_tensors({made::tensor("z", {16, 4}, std::string(256, '\0'))});
  CHECK(found_after(zeros, {}, layout_of(ScalarType::kFloat32, {16, 4})) ==
        "z\nz, rows of heads of 8 interleaved for rotary embeddings\n"
        "z, rows of heads of 4 interleaved for rotary embeddings\n");
  // One number has no rows.
  const Checkpoint solid = of_tensors({random_tensor("s", {16, 2, 2}, 1)});
  CHECK(found_after(solid, {InterleaveRopeStep{8}}, layout_of(ScalarType::kFloat32, {16, 2, 2})).empty());
  const Checkpoint more = of_tensors(
      {random_tensor("q", {16, 4}, 1), random_tensor("one", {}, 2), random_tensor("1", {1, 1, 1}, 4)});
  CHECK(found(more, payload_of(made::floats(1, 3), layout_of(ScalarType::kFloat32, {}))).empty());
}

TEST_CASE("tensors are found joined by rows") {
  const Checkpoint all = of_tensors({random_tensor("q", {8, 4}, 1), random_tensor("k", {4, 4}, 2),
                                     random_tensor("v", {4, 4}, 3), random_tensor("b", {3}, 4)});
  const TensorLayout layout = layout_of(ScalarType::kFloat32, {16, 4});
  const std::string joined = bytes_after(all, WeightSteps{{0, {}}, {1, {}}, {2, {}}});
  CHECK(found(all, payload_of(joined, layout)) == "q; then k; then v\n");
  const WeightSteps interleaved = {{0, {InterleaveRopeStep{8}}}, {1, {InterleaveRopeStep{4}}}, {2, {}}};
  CHECK(found(all, payload_of(bytes_after(all, interleaved), layout)) ==
        "q, rows of heads of 8 interleaved for rotary embeddings; then k, rows of heads of 4 interleaved for "
        "rotary embeddings; then v\n");
  const std::string rest = joined.substr(0, 12 * 16) + made::floats(16, 9);
  CHECK(found(all, payload_of(rest, layout)).empty());
  // A part must be whole.
  CHECK(found(all, payload_of(joined.substr(0, 14 * 16), layout_of(ScalarType::kFloat32, {14, 4}))).empty());
}

TEST_CASE("from two parts to 4096 are found joined, of one element a row too") {
  const Checkpoint all = of_tensors({random_tensor("a", {16}, 1), random_tensor("b", {1, 16}, 2)});
  const std::string both = bytes_after(all, WeightSteps{{0, {}}, {1, {}}});
  CHECK(found(all, payload_of(both, layout_of(ScalarType::kFloat32, {32}))) == "a; then b\n");
  CHECK(found(all, payload_of(both, layout_of(ScalarType::kFloat32, {2, 16}))) == "a; then b\n");
  std::string many;
  for (int i = 0; i < 4096; ++i) many += bytes_after(all, 0, {});
  CHECK_FALSE(found(all, payload_of(many, layout_of(ScalarType::kFloat32, {4096, 16}))).empty());
  many += bytes_after(all, 0, {});
  CHECK(found(all, payload_of(many, layout_of(ScalarType::kFloat32, {4097, 16}))).empty());
}

/// A payload of integers with their scales, as a graph describes them.
struct Quantized {
  WeightPayload integers;
  WeightPayload scales;
};

Quantized quantized(const Checkpoint& checkpoint, const WeightSteps& steps, ScaledIntegers integers,
                    std::vector<std::int32_t> sizes, ScalarType type = ScalarType::kFloat32) {
  const std::string bytes = bytes_after(checkpoint, steps);
  const std::string scales = bytes_after(checkpoint, *scales_of(steps, type));
  Quantized out{
      payload_of(bytes, layout_of(ScalarType::kInt8, std::move(sizes))),
      payload_of(scales, layout_of(type, {static_cast<std::int32_t>(scales.size() / item_size(type))}))};
  out.integers.integers = std::move(integers);
  return out;
}

constexpr float kLeast = std::numeric_limits<float>::min();

TEST_CASE("integers of 8 bits are found with the scales of rows and of tensors") {
  const Checkpoint all = of_tensors({random_tensor("w", {4, 6}, 1)});
  const WeightSteps by_row = {{0, {QuantizeStep{{6, -128, 127, kLeast}}}}};
  Quantized rows = quantized(all, by_row, {{4, 6}, 0, 0, true}, {4, 6});
  CHECK(found(all, rows.integers, &rows.scales) == "w, quantized to integers from -128 to 127, 6 a scale\n");
  const WeightSteps whole = {{0, {QuantizeStep{{24, -127, 127, 1.0F / 4096}}}}};
  Quantized tensor = quantized(all, whole, {{4, 6}, 0, 0, false}, {4, 6});
  CHECK(found(all, tensor.integers, &tensor.scales) ==
        "w, quantized to integers from -127 to 127, 24 a scale\n");
  // Scales that do not follow from the weights leave the integers unexplained, and so do none.
  WeightPayload other = rows.scales;
  other.data = source_of(made::floats(4, 7));
  CHECK(found(all, rows.integers, &other).empty());
  other.layout.reset();
  CHECK(found(all, rows.integers, &other).empty());
  // A tensor of integers has no scales.
  const Checkpoint integers =
      of_tensors({made::tensor("w", {4, 6}, text_of(rows.integers.data), ScalarType::kInt8)});
  CHECK(found(integers, rows.integers) == "w\n");
  CHECK(found(integers, rows.integers, &rows.scales).empty());
  // Channels that are not there have no scales of their own.
  for (const ScaledIntegers& wrong :
       {ScaledIntegers{{4, 6}, 2, 0, true}, ScaledIntegers{{0, 6}, 0, 0, true}}) {
    rows.integers.integers = wrong;
    CHECK(found(all, rows.integers, &rows.scales).empty());
  }
  // Without scales, both of a row and of all are tried.
  rows.integers.integers.reset();
  CHECK(found(all, rows.integers) == "w, quantized to integers from -128 to 127, 6 a scale\n");
  tensor.integers.integers.reset();
  CHECK(found(all, tensor.integers) == "w, quantized to integers from -127 to 127, 24 a scale\n");
  for (const std::int32_t size : {0, 1}) {
    CHECK(found(all, payload_of("\1", layout_of(ScalarType::kInt8, {size}))).empty());
  }
  CHECK(found(all, payload_of("\1", layout_of(ScalarType::kInt8, {}))).empty());
}

TEST_CASE("integers without scales are found in groups of usual sizes") {
  const Checkpoint all = of_tensors({random_tensor("w", {2, 512}, 1)});
  for (const std::uint64_t group : {16U, 32U, 64U, 128U, 256U}) {
    const QuantizeStep step{{group, -128, 127, kLeast}};
    CHECK(found_after(all, {step}, layout_of(ScalarType::kInt8, {2, 512})) == "w, " + describe(step) + "\n");
  }
}

TEST_CASE("an observer's scales are 1/4096 or more") {
  std::vector<float> small = made::numbers(24, 1);
  for (float& each : small) each /= 1024;
  const Checkpoint all = of_tensors({made::tensor("w", {4, 6}, made::bytes_of_numbers(small))});
  const WeightSteps whole = {{0, {QuantizeStep{{24, -127, 127, 1.0F / 4096}}}}};
  const Quantized made = quantized(all, whole, {{4, 6}, 0, 0, false}, {4, 6});
  CHECK(found(all, made.integers, &made.scales) == "w, quantized to integers from -127 to 127, 24 a scale\n");
}

TEST_CASE("integers of a convolution are ordered before or after their scales are taken") {
  const Checkpoint all = of_tensors({random_tensor("w", {4, 3, 2}, 1)});
  const WeightSteps outermost = {{0, {PermuteStep{{0, 2, 1}}, QuantizeStep{{6, -127, 127, 1.0F / 4096}}}}};
  const Quantized ordered = quantized(all, outermost, {{4, 2, 3}, 0, 0, true}, {4, 2, 3});
  CHECK(found(all, ordered.integers, &ordered.scales) ==
        "w, dimensions in the order [0, 2, 1], quantized to integers from -127 to 127, 6 a scale\n");
  const WeightSteps innermost = {{0, {QuantizeStep{{6, -127, 127, 1.0F / 4096}}, PermuteStep{{1, 2, 0}}}}};
  const Quantized behind = quantized(all, innermost, {{3, 2, 4}, 2, 0, true}, {3, 2, 4});
  CHECK(found(all, behind.integers, &behind.scales) ==
        "w, quantized to integers from -127 to 127, 6 a scale, dimensions in the order [1, 2, 0]\n");
}

TEST_CASE("integers of 4 bits are found, with bfloat16 scales of groups") {
  const Checkpoint all = of_tensors({random_tensor("w", {4, 32}, 1)});
  const WeightSteps groups = {{0, {QuantizeStep{{16, -8, 7, kLeast}}}}};
  Quantized made = quantized(all, groups, {{4, 32}, 0, 16, true}, {64}, ScalarType::kBFloat16);
  made.integers.layout = layout_of(ScalarType::kUInt8, {64});
  made.integers.is_of_nibbles = true;
  CHECK(found(all, made.integers, &made.scales) == "w, quantized to integers from -8 to 7, 16 a scale\n");
  const Checkpoint row = of_tensors({random_tensor("r", {1, 32}, 1)});
  Quantized of_row = quantized(row, groups, {{1, 32}, 0, 16, true}, {16}, ScalarType::kBFloat16);
  of_row.integers.layout = layout_of(ScalarType::kUInt8, {16});
  of_row.integers.is_of_nibbles = true;
  CHECK(found(row, of_row.integers, &of_row.scales) == "r, quantized to integers from -8 to 7, 16 a scale\n");
  // An embedding's are bytes with the first in the high half.
  Quantization high = {32, -8, 7, kLeast};
  high.high_is_first = true;
  CHECK(found_after(all, {QuantizeStep{high}}, layout_of(ScalarType::kUInt8, {4, 16})) ==
        "w, quantized to integers from -8 to 7, 32 a scale\n");
}

TEST_CASE("tensors in bfloat16 are quantized in it, or in float32") {
  const Checkpoint all = of_tensors({random_tensor("w", {64, 64}, 5, ScalarType::kBFloat16)});
  Quantization how = {64, -128, 127, kLeast};
  for (const bool in_bfloat16 : {false, true}) {
    how.in_bfloat16 = in_bfloat16;
    const WeightSteps steps = {{0, {CastStep{ScalarType::kFloat32}, QuantizeStep{how}}}};
    const Quantized made = quantized(all, steps, {{64, 64}, 0, 0, true}, {64, 64});
    CHECK(found(all, made.integers, &made.scales) ==
          "w, cast to float32, quantized to integers from -128 to 127, 64 a scale" +
              std::string(in_bfloat16 ? ", in bfloat16\n" : "\n"));
  }
  // A tensor in float32 is quantized in float32 alone.
  const Checkpoint wide = of_tensors({random_tensor("w", {64, 64}, 5)});
  how.in_bfloat16 = true;
  const Quantized made = quantized(wide, {{0, {QuantizeStep{how}}}}, {{64, 64}, 0, 0, true}, {64, 64});
  CHECK(found(wide, made.integers, &made.scales).empty());
}

TEST_CASE("joined tensors are quantized by the row") {
  const Checkpoint all = of_tensors({random_tensor("q", {4, 32}, 1), random_tensor("k", {2, 32}, 2)});
  const Quantization how = {32, -128, 127, kLeast};
  Quantized made =
      quantized(all, {{0, {QuantizeStep{how}}}, {1, {QuantizeStep{how}}}}, {{6, 32}, 0, 0, true}, {6, 32});
  const std::string expected =
      "q, quantized to integers from -128 to 127, 32 a scale; then k, quantized to integers from -128 to "
      "127, 32 a scale\n";
  CHECK(found(all, made.integers, &made.scales) == expected);
  made.integers.integers.reset();
  CHECK(found(all, made.integers) == expected);
  // One scale of all rows would be that of no tensor.
  const std::string bytes = patterned(128);
  const Checkpoint integers = of_tensors({made::tensor("a", {1, 64}, bytes.substr(0, 64), ScalarType::kInt8),
                                          made::tensor("b", {1, 64}, bytes.substr(64), ScalarType::kInt8)});
  WeightPayload both = payload_of(bytes, layout_of(ScalarType::kInt8, {2, 64}));
  both.integers = {{2, 64}, 0, 0, true};
  CHECK(found(integers, both) == "a; then b\n");
  both.integers->has_channels = false;
  CHECK(found(integers, both).empty());
}

TEST_CASE("weights are found with the batch norm behind them") {
  std::vector<float> variance = made::numbers(3, 5);
  for (float& each : variance) each = each * each + 0.5F;
  Checkpoint all =
      of_tensors({random_tensor("conv.weight", {3, 2, 2}, 1), random_tensor("bn.running_mean", {3}, 2),
                  made::tensor("bn.running_var", {3}, made::bytes_of_numbers(variance)),
                  random_tensor("bn.weight", {3}, 3), random_tensor("bn.bias", {3}, 4),
                  random_tensor("up.weight", {2, 3, 2}, 5)});
  NormStep norm{.mean = 1, .variance = 2, .weight = 3, .bias = 4, .epsilon = 1e-3F};
  CHECK(found_after(all, {norm, PermuteStep{{0, 2, 1}}}, layout_of(ScalarType::kFloat32, {3, 2, 2})) ==
        "conv.weight, with the batch norm behind it, dimensions in the order [0, 2, 1]\n");
  norm.axis = 1;
  CHECK(found(all, payload_of(bytes_after(all, 5, {norm}), layout_of(ScalarType::kFloat32, {2, 3, 2}))) ==
        "up.weight, with the batch norm behind it\n");
  norm.part = NormStep::Part::kAsConvolution;
  CHECK(found(all, payload_of(bytes_after(all, 3, {norm}), layout_of(ScalarType::kFloat32, {3}))) ==
        "bn.weight, its batch norm as a convolution\n");
  norm.part = NormStep::Part::kBias;
  norm.has_bias = false;
  CHECK(found(all, payload_of(bytes_after(all, 1, {norm}), layout_of(ScalarType::kFloat32, {3})))
            .starts_with("bn.running_mean, as bias with the rest of its batch norm\n"));
  // These are no parts of norms, or of norms without a part; nor are those that are no list of float32.
  for (const char* name : {"bn.running_mode", "a.running_mean", "a.weight", "a.bias", "b.running_mean",
                           "b.running_var", "b.bias", "c.running_mean", "c.running_var", "c.weight"}) {
    all.tensors.push_back(random_tensor(name, {1}, 6));
  }
  all.tensors.push_back(random_tensor("half", {3}, 7, ScalarType::kBFloat16));
  all.tensors.push_back(made::tensor("integers", {3}, std::string(12, '\1'), ScalarType::kInt32));
  all.tensors.push_back(random_tensor("opaque", {3}, 8));
  all.tensors.back().layout.reset();
  // Each tensor of 3 may be the bias of weights without a norm, and those of float32 that of weights with
  // one.
  const OriginSearch search(all, {});
  const WeightPayload convolution = payload_of("", layout_of(ScalarType::kFloat32, {3, 2, 2}));
  CHECK(search.biases(convolution, {}, 3).size() == 5);
  CHECK(search.biases(convolution, {}, 4).empty());
  norm.part = NormStep::Part::kWeights;
  CHECK(search.biases(convolution, {{0, 48, {0, {norm}}}}, 3).size() == 4);
  CHECK(search.biases(convolution, {{0, 48, {0, {norm}}}, {0, 48, {0, {}}}}, 3).size() == 9);
  norm.part = NormStep::Part::kAsConvolution;
  const auto of_norm = search.biases(convolution, {{0, 12, {3, {norm}}}}, 3);
  REQUIRE(of_norm.size() == 1);
  CHECK(described(all, of_norm.front()) == "bn.bias, its batch norm as a convolution, the bias");
  const Checkpoint half = of_tensors({random_tensor("half", {3}, 7, ScalarType::kBFloat16)});
  CHECK(described(half, OriginSearch(half, {}).biases(convolution, {}, 3).front()) ==
        "half, cast to float32");
  // The first tensors of a checkpoint may be a norm. One of other channels is none of a tensor.
  Checkpoint norms{{}, {all.tensors.begin() + 1, all.tensors.begin() + 5}};
  for (const char* name : {"d.running_mean", "d.running_var", "d.weight", "d.bias"}) {
    norms.tensors.push_back(random_tensor(name, {2}, 9));
  }
  // The weights of a linear layer have two dimensions.
  norms.tensors.push_back(random_tensor("linear.weight", {3, 5}, 10));
  const NormStep first{.mean = 0, .variance = 1, .weight = 2, .bias = 3, .epsilon = 1e-3F};
  CHECK(found(norms, payload_of(bytes_after(norms, 8, {first}), layout_of(ScalarType::kFloat32, {3, 5}))) ==
        "linear.weight, with the batch norm behind it\n");
}

TEST_CASE("all tensors that give a payload are found, whatever the steps") {
  const CheckpointTensor one = random_tensor("w", {4, 4}, 1);
  CheckpointTensor same = one;
  same.name = "same";
  CheckpointTensor turned = one;
  turned.name = "turned";
  turned.data = source_of(bytes_after(of_tensors({one}), 0, {PermuteStep{{1, 0}}}));
  const Checkpoint all = of_tensors({one, same, turned});
  CHECK(found_after(all, {}, layout_of(ScalarType::kFloat32, {4, 4})) == "w\nsame\nturned, transposed\n");
  const CheckpointTensor top = made::tensor("top", {1, 4}, bytes_after(all, 0, {}).substr(0, 16));
  const CheckpointTensor rest = made::tensor("rest", {3, 4}, bytes_after(all, 0, {}).substr(16));
  CHECK(found_after(of_tensors({one, top, rest}), {}, layout_of(ScalarType::kFloat32, {4, 4})) ==
        "w\ntop; then rest\n");
}

TEST_CASE("what no tensor can give is not found, nor a single integer") {
  CheckpointTensor opaque = random_tensor("opaque", {4}, 1);
  opaque.layout.reset();
  CheckpointTensor infinite =
      made::tensor("infinite", {4}, made::bytes_of_numbers(std::vector<float>(4, INFINITY)));
  const std::string count("\7\0\0\0\0\0\0\0", 8);
  const Checkpoint all = of_tensors({opaque, infinite, made::tensor("count", {}, count, ScalarType::kInt64),
                                     made::tensor("empty", {0}, "")});
  CHECK(found(all, payload_of(count, layout_of(ScalarType::kInt64, {}))).empty());
  CHECK(found(all, payload_of(std::string("\1\2\3\4"), layout_of(ScalarType::kInt8, {4}))).empty());
  CHECK(found(all, payload_of("abc", layout_of(ScalarType::kFloat32, {1}))).empty());
  WeightPayload without_layout = payload_of(made::floats(4, 1), {});
  without_layout.layout.reset();
  CHECK(found(all, without_layout).empty());
  CHECK(found(all, payload_of(made::floats(4, 1), layout_of(ScalarType::kFloat32, {4}))).empty());
}

TEST_CASE("ways are tried in proportion to the number of tensors") {
  const auto refused = [](const Checkpoint& checkpoint, const WeightPayload& payload) {
    OriginSearch search(checkpoint, {});
    return error_of(search.find(payload, nullptr));
  };
  Checkpoint norms;
  for (int i = 0; i < 120; ++i) {
    for (const char* part : {"weight", "bias", "running_mean", "running_var"}) {
      norms.tensors.push_back(random_tensor(std::to_string(i) + "." + part, {1}, norms.tensors.size()));
    }
  }
  CHECK(refused(norms, payload_of(made::floats(1, 999), layout_of(ScalarType::kFloat32, {1}))) ==
        containing("kTooLarge: the checkpoint: expected at most 323584 ways from its tensors"));
  // Rows that begin alike, and a payload that has the last one over and over.
  Checkpoint rows;
  std::string last;
  for (int i = 0; i < 1000; ++i) {
    last = std::string(64, '\0') + made::floats(1, static_cast<std::uint64_t>(i));
    rows.tensors.push_back(made::tensor(std::to_string(i), {1, 17}, last));
  }
  std::string all;
  for (int i = 0; i < 1000; ++i) all += last;
  CHECK(refused(rows, payload_of(all, layout_of(ScalarType::kFloat32, {1000, 17}))) ==
        containing("kTooLarge: the checkpoint: expected at most 390144 ways from its tensors"));
  CHECK(found(rows, payload_of(all.substr(0, 300 * last.size()),
                               layout_of(ScalarType::kFloat32, {300, 17}))) != "");
}

TEST_CASE("parts are told apart by their first 64 bytes") {
  Checkpoint rows;
  std::string last;
  for (int i = 0; i < 256; ++i) {
    last = std::string(63, '\0') + static_cast<char>(i) + "abcd";
    rows.tensors.push_back(made::tensor(std::to_string(i), {1, 17}, last));
  }
  std::string all;
  for (int i = 0; i < 600; ++i) all += last;
  CHECK(found(rows, payload_of(all, layout_of(ScalarType::kFloat32, {600, 17}))) != "");
}

TEST_CASE("one row is tried as a whole, and not as a part too") {
  const Checkpoint all = of_tensors({random_tensor("w", {16}, 1)});
  const auto error_with = [&](std::uint64_t tries, std::int32_t rows) {
    OriginSearch search(all, {});
    for (std::uint64_t i = tries; i < search.most_tries(); ++i) REQUIRE(search.count_try());
    return error_of(
        search.find(payload_of(made::floats(16, 2), layout_of(ScalarType::kFloat32, {rows, 16 / rows}))));
  };
  CHECK(error_with(1, 1) == "no error");
  CHECK(error_with(0, 1) == containing("kTooLarge: the checkpoint: expected at most 262272 ways"));
  CHECK(error_with(2, 2) == "no error");
  CHECK(error_with(1, 2) == containing("kTooLarge"));
}

TEST_CASE("tensors that begin alike are told by what is in their middle, and a payload may come often") {
  std::vector<CheckpointTensor> tensors;
  const std::string begin = made::floats(16, 1);
  for (std::uint64_t i = 0; i < 200; ++i) {
    tensors.push_back(made::tensor(std::to_string(i), {256}, begin + made::floats(240, i)));
  }
  const Checkpoint all = of_tensors(std::move(tensors));
  OriginSearch search(all, {});
  for (std::size_t i = 0; i < 200; ++i) {
    const auto ways =
        search.find(payload_of(bytes_after(all, i, {}), layout_of(ScalarType::kFloat32, {256})));
    REQUIRE_MESSAGE(ways, full_message(ways.error()));
    CHECK(described(all, *ways) == std::to_string(i) + "\n");
  }
  const Checkpoint one = of_tensors({random_tensor("w", {4096}, 1)});
  OriginSearch again(one, {});
  for (int i = 0; i < 100; ++i) {
    CHECK(again.find(payload_of(bytes_after(one, 0, {}), layout_of(ScalarType::kFloat32, {4096}))));
  }
}

TEST_CASE("a checkpoint that can't be read is an error") {
  CheckpointTensor broken = random_tensor("w", {4}, 1);
  broken.data = failing(16, 8);
  const Checkpoint all = of_tensors({broken});
  OriginSearch search(all, {});
  const auto ways = search.find(payload_of(made::floats(4, 1), layout_of(ScalarType::kFloat32, {4})));
  CHECK(code_of(ways) == exactly("kIo"));
}

}  // namespace
}  // namespace etstream::origin_search_test
