// SPDX-License-Identifier: BSD-3-Clause
//
// The payloads of a program that may be made of weights, wherever they lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/program.h"
#include "etstream/result.h"
#include "etstream/tensor.h"
#include "etstream/tensor_data.h"
#include "formats/pte/backends/backend_payload.h"

namespace etstream {

/// A range of the program's file, or of one of its tensor data files.
struct WeightPayload {
  std::string label;  // "constant 'w' of method 'forward'", "filter of XNNFullyConnected 3 in ..."
  std::string name;   // its key, or the path of the piece; empty if it has neither
  std::set<std::string> names = {};  // with those of others that have the same data
  ByteSource data;
  std::string file = {};     // that it lies in
  std::uint64_t offset = 0;  // in the file, in bytes
  std::optional<TensorLayout> layout = {};
  bool is_of_nibbles = false;  // two integers a byte, the first in the low half
  bool are_scales = false;     // of the integers in another payload
  bool is_calibrated = false;  // the scale of an activation, which follows from data and not from weights
  bool is_asked = true;        // by the program, as far as is known
  bool is_opaque = false;      // what a backend compiled, which may hold weights in any form
  std::optional<ScaledIntegers> integers = {};  // that it holds, or whose scales it holds
  std::optional<std::size_t> scales = {};       // the place among the payloads of the scales of its integers
  std::size_t uses = 0;                         // how often the program has it, as far as is known
  std::vector<BiasUse> bias_of = {};            // the uses that are as a bias, with the places of the weights
  /// The SHA-256 of the data as 64 characters, wherever the files have it as a key or as the name of a
  /// tensor.
  std::vector<ByteSource> hashes = {};
};

/// Reads the payloads in the order in which methods, and then their delegates, have them; data that only a
/// key leads to comes last. Data that several have is listed once. Memory: 500 bytes a payload. Errors:
/// kNotFound for a key that neither the program nor `weights` have; those of ProgramGraph::read(), of
/// read_xnnpack_uses() and of read_vulkan_constants(), also for damaged data of a delegate.
[[nodiscard]] Result<std::vector<WeightPayload>> read_weight_payloads(
    const ProgramFile& program, const std::vector<const TensorDataFile*>& weights);

}  // namespace etstream
