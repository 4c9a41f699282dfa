// SPDX-License-Identifier: BSD-3-Clause
//
// The steps from a checkpoint's tensors to a payload of a program.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/result.h"
#include "etstream/tensor.h"
#include "formats/tensor/scaled_floats.h"

namespace etstream {

/// Symmetric quantizations of torchao, and of pt2e's XNNPACKQuantizer. The least scales are torchao's, and
/// that of the observers.
inline constexpr Quantization kNibbles = {0, -8, 7, std::numeric_limits<float>::min()};
inline constexpr Quantization kBytes = {0, -128, 127, std::numeric_limits<float>::min()};
inline constexpr Quantization kObservedBytes = {0, -127, 127, 1.0F / 4096};
inline constexpr std::array kQuantizations = {kNibbles, kBytes, kObservedBytes};

struct TensorSteps;

/// The bytes of these follow one another.
using WeightSteps = std::vector<TensorSteps>;

struct CastStep {
  ScalarType type = ScalarType::kFloat32;
};
/// Dimension i of the result is dimension order[i] of the tensor. If there are `groups`, the tensor's first
/// dimension is taken for two, the groups and what each has.
struct PermuteStep {
  std::vector<std::uint8_t> order;
  std::uint64_t groups = 1;
};
/// Rows in the order that interleaved rotary embeddings take: see interleave_rope().
struct InterleaveRopeStep {
  std::uint32_t head_dim = 0;
};
/// Takes float32, as do the steps that follow.
struct QuantizeStep {
  Quantization how;
};
struct ScalesStep {
  Quantization how;
};
/// Takes a batch norm into the tensor: see batch_norm.h.
struct NormStep {
  enum class Part : std::uint8_t {
    kWeights,            // of the weights before it, whose channels are dimension `axis`
    kBias,               // of their bias
    kLinearBias,         // of their bias, if they are linear
    kAsConvolution,      // of its own weight
    kBiasOfConvolution,  // of its own bias
  };
  Part part = Part::kWeights;
  std::size_t mean = 0;  // the places of its tensors, as what follows
  std::size_t variance = 0;
  std::size_t weight = 0;
  std::size_t bias = 0;
  float epsilon = 0;
  std::uint8_t axis = 0;
  bool has_bias = true;  // or the tensor is the mean, and the weights have no bias
};
/// A bias as integers of 32 bits, whose scales are those of quantized weights times that of their input.
struct QuantizeBiasStep {
  WeightSteps scales;  // of the weights
  float input_scale = 0;
  bool are_scales = false;  // the result: the scales, and not the integers
};
using WeightStep = std::variant<CastStep, PermuteStep, InterleaveRopeStep, QuantizeStep, ScalesStep, NormStep,
                                QuantizeBiasStep>;

/// A tensor with what is done to it.
struct TensorSteps {
  std::size_t tensor = 0;  // its place in the checkpoint
  std::vector<WeightStep> steps;
};

/// A tensor with steps that give the bytes of a payload from `at` on. Where a payload may be made in several
/// ways, each way is pieces that follow one another, and ways may have pieces in common.
struct WeightPiece {
  std::uint64_t at = 0;
  std::uint64_t size = 0;
  TensorSteps steps;
};

/// Returns one of the ways through `pieces`, which come in the order of where they begin, and of which each
/// is on a way.
[[nodiscard]] WeightSteps one_way(const std::vector<WeightPiece>& pieces);

/// Puts `pieces` into their order, and drops those on no way from 0 to `size`.
void keep_ways(std::vector<WeightPiece>& pieces, std::uint64_t size);

/// Returns the norm that the steps take in, or null.
[[nodiscard]] const NormStep* norm_in(const TensorSteps& steps);

/// Returns the places of the tensor and of those that its steps take besides, but for those of scales.
[[nodiscard]] std::vector<std::size_t> tensors_in(const TensorSteps& steps);

/// Calls `see` with each place of a tensor in the steps, also of those that have scales.
template <class Steps, class See>
void for_each_place(Steps& steps, const See& see) {
  see(steps.tensor);
  for (auto& step : steps.steps) {
    if (auto* const norm = std::get_if<NormStep>(&step)) {
      for (auto* const place : {&norm->mean, &norm->variance, &norm->weight, &norm->bias}) see(*place);
    } else if (auto* const bias = std::get_if<QuantizeBiasStep>(&step)) {
      for (auto& part : bias->scales) for_each_place(part, see);
    }
  }
}

/// Describes a step for people: "cast to bfloat16", "dimensions in the order [0, 2, 3, 1]".
[[nodiscard]] std::string describe(const WeightStep& step);

/// Returns whether `tensor` can have steps: it has a layout, and its elements follow one another.
[[nodiscard]] bool is_plain(const CheckpointTensor& tensor);

/// Returns the tensor at a place of the checkpoint, which is_plain().
using FindTensor = std::function<Result<const CheckpointTensor*>(std::size_t place)>;
[[nodiscard]] FindTensor tensors_of(const std::vector<CheckpointTensor>& tensors);

/// Returns the bytes that the steps make of the tensors, as they are read. Norms and biases are read here;
/// they have at most 65536 channels. Steps may come from a file. Errors: kInvalidArgument for steps that a
/// shape or a type does not allow; those of quantize() and of `find`.
[[nodiscard]] Result<ByteSource> take_steps(const FindTensor& find, const TensorSteps& steps);
[[nodiscard]] Result<ByteSource> take_steps(const FindTensor& find, const WeightSteps& steps);

/// Returns the steps that give the scales of the integers that `steps` give, as elements of `type`; nothing
/// if `steps` quantize nothing.
[[nodiscard]] std::optional<WeightSteps> scales_of(const WeightSteps& steps, ScalarType type);
/// Returns the same of a piece, without its size.
[[nodiscard]] std::optional<WeightPiece> scales_of(const WeightPiece& piece, ScalarType type);

}  // namespace etstream
