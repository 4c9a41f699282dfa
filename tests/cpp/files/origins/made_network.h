// SPDX-License-Identifier: BSD-3-Clause
//
// A network with its weights, and the program and the tensor data that an export makes of it.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/hashes.h"
#include "files/origins/made_program.h"
#include "formats/pte/backends/made_xnnpack_payload.h"
#include "formats/recipe/weight_steps.h"

namespace etstream::made {

inline std::string hash_of(const std::string& bytes) {
  Sha256 hasher;
  hasher.update(std::as_bytes(std::span(bytes)));
  return hasher.hex();
}

/// Returns the bytes that the steps make of the tensors.
inline std::string bytes_after(const Checkpoint& checkpoint, const WeightSteps& steps) {
  const auto made = take_steps(tensors_of(checkpoint.tensors), steps);
  REQUIRE_MESSAGE(made, full_message(made.error()));
  return text_of(*made);
}

inline std::string bytes_after(const Checkpoint& checkpoint, std::size_t tensor,
                               std::vector<WeightStep> steps) {
  return bytes_after(checkpoint, WeightSteps{{tensor, std::move(steps)}});
}

constexpr Quantization kNibbles = {16, -8, 7, std::numeric_limits<float>::min()};
constexpr Quantization kOneScale = {8, -127, 127, 1.0F / 4096};
constexpr float kInputScale = 0.0625F;

/// The tensors of a network, by their places.
enum Tensor : std::size_t { kTable, kWeight, kBias, kSecond, kSecondBias, kState, kOutside, kUnused };

inline Checkpoint checkpoint(std::uint64_t seed) {
  const auto own = [&](const std::string& name, std::vector<std::int32_t> sizes) {
    std::size_t count = 1;
    for (const std::int32_t size : sizes) count *= static_cast<std::size_t>(size);
    return tensor(name, std::move(sizes), floats(count, seed * 100 + name.size() + count));
  };
  return {{"weights.safetensors"},
          {own("table", {8, 4}), own("first.weight", {4, 32}), own("first.bias", {4}),
           own("second.weight", {2, 4}), own("second.bias", {2}), own("state", {3}), own("outside", {5}),
           own("unused.weight", {7})}};
}

/// Returns the data of XNNPACK's delegate, and adds its named data to the program: a linear layer of integers
/// of 4 bits, and one of integers of 8 bits, whose bias and scales lie in the payload.
inline std::string delegate_of(const Checkpoint& weights, Program& program) {
  using namespace made_xnnpack;   // NOLINT: their names are what this is about
  using namespace xnnpack_graph;  // NOLINT
  XNNGraphT graph = empty_graph();
  const auto add_named = [&](const std::string& prefix, const std::string& bytes) {
    program.named_data.emplace_back(prefix + hash_of(bytes), bytes);
    return add_constant(graph, program.named_data.back().first, bytes.size());
  };
  PerChannelGroupQuantT groups;
  groups.group_size = 16;
  const std::uint32_t filter = add_named("", bytes_after(weights, kWeight, {QuantizeStep{kNibbles}}));
  groups.scale_buffer_idx = add_named(
      "scale_", bytes_after(weights, kWeight, {ScalesStep{kNibbles}, CastStep{ScalarType::kBFloat16}}));
  const std::uint32_t bias = add_named("", bytes_after(weights, kBias, {}));
  const std::string second = bytes_after(weights, kSecond, {QuantizeStep{kOneScale}});
  QuantizeBiasStep step{{{kSecond, {ScalesStep{kOneScale}}}}, kInputScale};
  const std::string second_bias = bytes_after(weights, kSecondBias, {step});
  step.are_scales = true;
  PerTensorQuantT input;
  PerTensorQuantT of_second;
  PerTensorQuantT of_bias;
  input.scale = kInputScale;
  of_second.scale = get_at<float>(bytes_after(weights, kSecond, {ScalesStep{kOneScale}}), 0);
  of_bias.scale = get_at<float>(bytes_after(weights, kSecondBias, {step}), 0);
  add_scaled(graph, tensor_of(0, XNNDatatype_xnn_datatype_qint8, {1, 4}, 0), input);
  add_scaled(graph, tensor_of(1, XNNDatatype_xnn_datatype_qbint4, {4, 32}, filter), groups);
  add_value(graph, tensor_of(2, XNNDatatype_xnn_datatype_fp32, {4}, bias));
  add_scaled(graph, tensor_of(3, XNNDatatype_xnn_datatype_qint8, {2, 4}, add_inner_constant(graph, 0, 8)),
             of_second);
  add_scaled(graph, tensor_of(4, XNNDatatype_xnn_datatype_qint32, {2}, add_inner_constant(graph, 8, 8)),
             of_bias);
  add_linear(graph, 1, 2, 9, 8);
  add_linear(graph, 3, 4, 9, 0);
  return payload_of(graph, second + second_bias);
}

/// Returns the program of a network of these weights.
inline Program program_of(const Checkpoint& weights) {
  Program out;
  out.constants = {
      {bytes_after(weights, kTable, {}), {8, 4}},
      {bytes_after(weights, kState, {}), {3}, "state", ScalarType::kFloat32, Place::kInitialState},
      {"", {5}, "outside", ScalarType::kFloat32, Place::kExternal},
      {bytes_of_numbers(std::vector<std::int64_t>{0, 1, 2}), {3}, "", ScalarType::kInt64}};
  out.delegates = {{"XnnpackBackend", delegate_of(weights, out)}};
  return out;
}

/// Returns the file of tensor data that the program runs with.
inline std::string data_of(const Checkpoint& weights) {
  return tensor_data({{bytes_after(weights, kOutside, {}), {5}, "outside"}});
}

}  // namespace etstream::made
