// SPDX-License-Identifier: BSD-3-Clause
//
// The steps from a checkpoint's tensors to a payload of a program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/checkpoint_tensor.h"
#include "etstream/result.h"
#include "etstream/scalar_type.h"
#include "formats/tensor/quantized_floats.h"

namespace etstream {

struct CastStep {
  ScalarType type = ScalarType::kFloat32;
  friend bool operator==(const CastStep&, const CastStep&) = default;
};
/// Dimension i of the result is dimension order[i] of the tensor.
struct PermuteStep {
  std::vector<std::uint8_t> order;
  friend bool operator==(const PermuteStep&, const PermuteStep&) = default;
};
/// Rows in the order that interleaved rotary embeddings take: see interleave_rope().
struct InterleaveRopeStep {
  std::uint32_t head_dim = 0;
  friend bool operator==(const InterleaveRopeStep&, const InterleaveRopeStep&) = default;
};
/// Takes float32, as do the scales.
struct QuantizeStep {
  Quantization how;
  friend bool operator==(const QuantizeStep&, const QuantizeStep&) = default;
};
struct ScalesStep {
  Quantization how;
  friend bool operator==(const ScalesStep&, const ScalesStep&) = default;
};
using WeightStep = std::variant<CastStep, PermuteStep, InterleaveRopeStep, QuantizeStep, ScalesStep>;

/// Describes a step for people: "cast to bfloat16", "dimensions in the order [0, 2, 3, 1]".
[[nodiscard]] std::string describe(const WeightStep& step);

/// A tensor with what is done to it.
struct TensorSteps {
  std::size_t tensor = 0;  // its place in the checkpoint
  std::vector<WeightStep> steps;
  friend bool operator==(const TensorSteps&, const TensorSteps&) = default;
};

/// The bytes of these follow one another.
using WeightSteps = std::vector<TensorSteps>;

/// Returns whether `tensor` can have steps: it has a layout, and its elements follow one another.
[[nodiscard]] bool is_plain(const CheckpointTensor& tensor);

/// Returns the bytes that the steps make of `tensor`, which is_plain(), as they are read. Errors:
/// kInvalidArgument for steps that its shape or type does not allow; those of quantize().
[[nodiscard]] Result<ByteSource> take_steps(const CheckpointTensor& tensor,
                                            const std::vector<WeightStep>& steps);

/// Returns the bytes that all of `steps` make of the tensors.
[[nodiscard]] Result<ByteSource> take_steps(const std::vector<CheckpointTensor>& tensors,
                                            const WeightSteps& steps);

/// Returns the steps that give the scales of the integers that `steps` give, as elements of `type`; nothing
/// if `steps` quantize nothing.
[[nodiscard]] std::optional<WeightSteps> scales_of(const WeightSteps& steps, ScalarType type);

}  // namespace etstream
