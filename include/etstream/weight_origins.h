// SPDX-License-Identifier: BSD-3-Clause
//
// Explains which tensors of a checkpoint the payloads of a program are, and by which steps they became so.
// Programs name weights by hashes, or not at all; they are told by their bytes.
//
//   const auto program = etstream::ProgramFile::open(etstream::ByteSource::file("model.pte").value());
//   const auto checkpoint = etstream::open_checkpoint("model.safetensors");
//   if (!program || !checkpoint) return program ? checkpoint.error() : program.error();
//   const auto origins = etstream::explain(*program, {}, *checkpoint);
//   if (!origins) return origins.error();
//   for (const etstream::PayloadOrigin& each : origins->payloads) std::puts(each.label.c_str());
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/checkpoint_tensor.h"
#include "etstream/export.h"
#include "etstream/key_names.h"
#include "etstream/program.h"
#include "etstream/result.h"
#include "etstream/tensor_data_file.h"

namespace etstream {

/// A tensor of the checkpoint, and what was done to it, in order.
struct TensorOrigin {
  std::string tensor;
  std::vector<std::string> steps;  // "cast to bfloat16", "transposed"; empty for the bytes as they are
};

/// A payload that weights may be in, with what it is made of.
struct PayloadOrigin {
  std::string
      label;         // for people: "constant 'w' of method 'forward'", "filter of XNNFullyConnected 3 in ..."
  std::string name;  // its key, or the path of the piece: "constants/3"; empty if it has neither
  ByteSource data;
  std::string file;          // that it lies in: the program's, or one of its tensor data files
  std::uint64_t offset = 0;  // in that file, in bytes
  std::string type;          // "float32 [4, 3]"; empty if it is not known
  bool are_scales = false;   // of integers in another payload
  /// The tensors whose bytes follow one another in it. Empty if none are known to be behind it.
  std::vector<TensorOrigin> tensors;
  /// The other tensors in ways to the same bytes.
  std::vector<std::string> equals;
  std::string
      constant;  // why no weights are behind it: "the number 0 everywhere", "cosines of positions"; or empty
  std::vector<std::string> nearest;  // if nothing explains it: tensors of as many elements, nearest first

  /// Returns whether its bytes are known.
  [[nodiscard]] bool is_explained() const noexcept { return !tensors.empty() || !constant.empty(); }
};

/// The payloads of a program, in the order in which it has them.
struct WeightOrigins {
  std::vector<PayloadOrigin> payloads;
  std::vector<std::string> unused;  // the tensors of the checkpoint that are behind no payload

  /// Returns whether all payloads are.
  [[nodiscard]] ETSTREAM_EXPORT bool are_explained() const noexcept;
};

/// Finds the origins of the payloads of `program`, and of those that it takes from `weights`: constants,
/// named data, and the constants in XNNPACK's payloads. Each is compared in full with what its steps give.
/// The steps are those of ExecuTorch 1.5.1's export: casts; other orders of the dimensions; rows interleaved
/// for rotary embeddings; tensors joined by rows; integers of 8 and 4 bits with scales of a tensor, a row or
/// a group, as torchao 0.18 and XNNPACKQuantizer choose them. A payload that is zeros, one number, a
/// sequence, a mask or a table of cosines or sines of positions needs no weights. What other backends
/// compiled is not explained.
///
/// Reads the checkpoint and the files about twice. Memory: 8 MiB, 500 bytes a payload, and 16 bytes for each
/// tensor and way that was tried. Errors: kNotFound for a key that neither the program nor `weights` have;
/// kCorrupt for a reference that can't be followed, and for weights that do not fit the program, as verify()
/// of program_weights.h finds; kUnsupported for a key that two of the files have; kIo.
[[nodiscard]] ETSTREAM_EXPORT Result<WeightOrigins> explain(const ProgramFile& program,
                                                            const std::vector<const TensorDataFile*>& weights,
                                                            const Checkpoint& checkpoint);

/// Returns the names of tensors for the keys and the paths of payloads, for inspect() and its page.
[[nodiscard]] ETSTREAM_EXPORT KeyNames key_names_of(const WeightOrigins& origins);

}  // namespace etstream
