// SPDX-License-Identifier: BSD-3-Clause
#include "formats/recipe/weight_steps.h"

#include <doctest/doctest.h>

#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "files/origins/made_program.h"
#include "test_errors.h"

namespace etstream::weight_steps_test {
namespace {

using made::bytes_of_numbers;
using made::tensor;

using Floats = std::vector<float>;

/// Tensors that a test takes steps with.
class Tensors {
 public:
  explicit Tensors(std::vector<CheckpointTensor> tensors) : tensors_(std::move(tensors)) {}

  Result<ByteSource> made(std::vector<WeightStep> steps) const {
    return take_steps(find_, TensorSteps{0, std::move(steps)});
  }
  template <class Number>
  std::vector<Number> numbers(std::vector<WeightStep> steps) const {
    const auto source = made(std::move(steps));
    REQUIRE_MESSAGE(source, full_message(source.error()));
    const std::string bytes = text_of(*source);
    std::vector<Number> out(bytes.size() / sizeof(Number));
    std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
  }
  [[nodiscard]] const FindTensor& find() const { return find_; }

 private:
  std::vector<CheckpointTensor> tensors_;
  FindTensor find_ = tensors_of(tensors_);
};

CheckpointTensor floats(const std::string& name, std::vector<std::int32_t> sizes, const Floats& values) {
  return tensor(name, std::move(sizes), bytes_of_numbers(values));
}

Floats counting(int count) {
  Floats out;
  for (int i = 0; i < count; ++i) out.push_back(static_cast<float>(i));
  return out;
}

TEST_CASE("a tensor is cast, and put in another order of its dimensions") {
  const Tensors one({floats("w", {2, 3}, counting(6))});
  CHECK(one.numbers<float>({}) == counting(6));
  CHECK(one.numbers<std::uint16_t>({CastStep{ScalarType::kBFloat16}}) ==
        std::vector<std::uint16_t>{0, 0x3f80, 0x4000, 0x4040, 0x4080, 0x40a0});
  CHECK(one.numbers<float>({PermuteStep{{1, 0}}}) == Floats{0, 3, 1, 4, 2, 5});
  // The second step takes what the first one gave: its sizes and its type.
  CHECK(one.numbers<float>({PermuteStep{{1, 0}}, PermuteStep{{1, 0}}}) == counting(6));
  CHECK(one.numbers<std::uint16_t>({CastStep{ScalarType::kBFloat16}, PermuteStep{{1, 0}}}) ==
        std::vector<std::uint16_t>{0, 0x4040, 0x3f80, 0x4080, 0x4000, 0x40a0});
}

TEST_CASE("the first dimension may be of groups") {
  // There are 2 groups with 2 inputs and 1 output each, and a kernel of 2: outputs, the kernel, inputs.
  const Tensors one({floats("w", {4, 1, 2}, counting(8))});
  CHECK(one.numbers<float>({PermuteStep{{0, 2, 3, 1}, 2}}) == Floats{0, 2, 1, 3, 4, 6, 5, 7});
}

TEST_CASE("rows of heads are interleaved for rotary embeddings") {
  const Tensors one({floats("w", {8, 1}, counting(8))});
  CHECK(one.numbers<float>({InterleaveRopeStep{4}}) == Floats{0, 2, 1, 3, 4, 6, 5, 7});
}

TEST_CASE("integers and scales follow from a tensor, joined ones from several") {
  const Tensors two({floats("a", {1, 2}, {127.5F, 1.0F}), floats("b", {1, 2}, {-255.0F, 3.0F})});
  const Quantization how = {2, -128, 127, std::numeric_limits<float>::min()};
  CHECK(two.numbers<std::int8_t>({QuantizeStep{how}}) == std::vector<std::int8_t>{127, 1});
  CHECK(two.numbers<float>({ScalesStep{how}}) == Floats{1});
  const WeightSteps joined = {{0, {QuantizeStep{how}}}, {1, {QuantizeStep{how}}}};
  const auto bytes = take_steps(two.find(), joined);
  REQUIRE(bytes);
  CHECK(text_of(*bytes) == std::string("\x7F\x01\x80\x02", 4));
  const auto scales = scales_of(joined, ScalarType::kBFloat16);
  REQUIRE(scales);
  CHECK(text_of(take_steps(two.find(), *scales).value()) == std::string("\x80\x3F\0\x40", 4));
}

/// A tensor, and the four of a batch norm behind it.
Tensors with_norm(CheckpointTensor own) {
  return Tensors({std::move(own), floats("mean", {3}, {-0.25F, 0.0625F, 2.0F}),
                  floats("variance", {3}, {2.25F, 6.625F, 2.125F}),
                  floats("weight", {3}, {3.5625F, -3.75F, -2.875F}),
                  floats("bias", {3}, {2.5625F, 3.5625F, -2.0625F})});
}

NormStep norm_step(NormStep::Part part) {
  return {.part = part, .mean = 1, .variance = 2, .weight = 3, .bias = 4, .epsilon = 1e-5F};
}

std::vector<std::uint32_t> bits(const Tensors& tensors, const NormStep& step) {
  return tensors.numbers<std::uint32_t>({step});
}

TEST_CASE("a batch norm becomes part of weights and bias, or a convolution of its own") {
  using Bits = std::vector<std::uint32_t>;
  using Part = NormStep::Part;
  const Bits factors = {0x4017ffea, 0xbfba7c9b, 0xbffc7200};
  CHECK(bits(with_norm(floats("w", {3, 1}, {1, 1, 1})), norm_step(Part::kWeights)) == factors);
  CHECK(bits(with_norm(floats("w", {3, 2}, {1, 1, 1, 1, 1, 1})), norm_step(Part::kWeights)) ==
        Bits{factors[0], factors[0], factors[1], factors[1], factors[2], factors[2]});
  NormStep second = norm_step(Part::kWeights);
  second.axis = 1;
  CHECK(bits(with_norm(floats("w", {1, 3}, {1, 1, 1})), second) == factors);
  const Tensors bias = with_norm(floats("b", {3}, {-1.5625F, 2.9375F, -0.625F}));
  CHECK(bits(bias, norm_step(Part::kBias)) == Bits{0xbf0dff90, 0xbf204c80, 0x404755a2});
  CHECK(bits(bias, norm_step(Part::kLinearBias)) == Bits{0xbf0dff8c, 0xbf204c78, 0x404755a0});
  NormStep without = norm_step(Part::kBias);
  without.has_bias = false;
  CHECK(bits(bias, without) == Bits{0x4049fffa, 0x4069d3e5, 0x3ff0e400});
  CHECK(bits(bias, norm_step(Part::kAsConvolution)) == Bits{0x4017ffea, 0xbfba7c9b, 0xbffc7201});
  CHECK(bits(bias, norm_step(Part::kBiasOfConvolution)) == Bits{0x4049fffa, 0x4069d3e5, 0x3ff0e401});
}

TEST_CASE("a bias becomes integers by the scales of the weights and that of their input") {
  const Quantization how = {2, -127, 127, 1.0F / 4096};
  const Tensors by_row({floats("b", {2}, {1.0F, -3.0F}), floats("w", {2, 2}, {127.0F, 1.0F, 254.0F, 0.0F})});
  QuantizeBiasStep step{{{1, {ScalesStep{how}}}}, 0.25F};
  CHECK(by_row.numbers<std::int32_t>({step}) == std::vector<std::int32_t>{4, -6});
  step.are_scales = true;
  CHECK(by_row.numbers<float>({step}) == Floats{0.25F, 0.5F});
  // One scale is for all.
  const Tensors by_tensor({floats("b", {3}, {1.0F, -3.0F, 1e30F}), floats("w", {1, 2}, {127.0F, 1.0F})});
  step.are_scales = false;
  CHECK(by_tensor.numbers<std::int32_t>({step}) ==
        std::vector<std::int32_t>{4, -12, std::numeric_limits<std::int32_t>::max()});
  step.are_scales = true;
  CHECK(by_tensor.numbers<float>({step}) == Floats{0.25F});
  // A tie goes to the even integer.
  const Tensors ties({floats("b", {2}, {0.625F, 0.875F}), floats("w", {1, 2}, {127.0F, 1.0F})});
  step.are_scales = false;
  CHECK(ties.numbers<std::int32_t>({step}) == std::vector<std::int32_t>{2, 4});
}

TEST_CASE("steps are described for people") {
  const Quantization how = {32, -8, 7};
  Quantization in_bfloat16 = how;
  in_bfloat16.in_bfloat16 = true;
  NormStep without_bias{.part = NormStep::Part::kBias};
  without_bias.has_bias = false;
  const std::pair<WeightStep, std::string> rows[] = {
      {CastStep{ScalarType::kBFloat16}, "cast to bfloat16"},
      {PermuteStep{{1, 0}}, "transposed"},
      {PermuteStep{{0, 2, 3, 1}}, "dimensions in the order [0, 2, 3, 1]"},
      {PermuteStep{{0, 2, 3, 1}, 4}, "dimensions in the order [0, 2, 3, 1], of 4 groups"},
      {InterleaveRopeStep{64}, "rows of heads of 64 interleaved for rotary embeddings"},
      {QuantizeStep{how}, "quantized to integers from -8 to 7, 32 a scale"},
      {ScalesStep{in_bfloat16}, "the scales of integers from -8 to 7, 32 a scale, in bfloat16"},
      {NormStep{}, "with the batch norm behind it"},
      {NormStep{.part = NormStep::Part::kLinearBias}, "with the batch norm behind it"},
      {without_bias, "as bias with the rest of its batch norm"},
      {NormStep{.part = NormStep::Part::kAsConvolution}, "its batch norm as a convolution"},
      {NormStep{.part = NormStep::Part::kBiasOfConvolution}, "its batch norm as a convolution, the bias"},
      {QuantizeBiasStep{{}, 0.5F},
       "quantized to integers of 32 bits, by the weights' scales and that of the input, 0.5"},
      {QuantizeBiasStep{{}, 0.5F, true},
       "the scales of integers of 32 bits, by the weights' scales and that of the input, 0.5"},
  };
  for (const auto& [step, expected] : rows) CHECK(describe(step) == expected);
}

}  // namespace
}  // namespace etstream::weight_steps_test
