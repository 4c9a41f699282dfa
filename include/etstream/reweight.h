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
//
// Puts the weights of another checkpoint into a program that is already lowered, without an export: each
// payload is made of the new checkpoint by the steps that gave it of the old one.
//
//   const auto program = etstream::ProgramFile::open(etstream::ByteSource::file("model.pte").value());
//   const auto was = etstream::open_checkpoint("old.safetensors");
//   const auto now = etstream::open_checkpoint("new.safetensors");
//   if (!program || !was || !now) return program ? was ? now.error() : was.error() : program.error();
//   const auto planned = etstream::plan(etstream::Reweighting{&*program, {}, &*was, &*now});
//   if (!planned) return planned.error();
//   const auto sink = etstream::open_file_sink("new.pte").value();
//   if (const auto written = etstream::write(planned->program, *sink); !written) return written.error();
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/checkpoint.h"
#include "etstream/packed_file.h"
#include "etstream/program.h"
#include "etstream/program_weights.h"
#include "etstream/result.h"
#include "etstream/sink.h"
#include "etstream/tensor.h"
#include "etstream/tensor_data.h"

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
/// sequence, a mask or a table of cosines or sines of positions needs no weights. The inverse frequencies of
/// rotary embeddings, which transformers saves in no checkpoint, count as a tensor: they are computed by the
/// config.json beside the checkpoint, or, if that does not say them, by their bytes. What other backends
/// compiled is not explained.
///
/// Reads the checkpoint and the files about twice. Memory: 8 MiB, 500 bytes a payload, and 16 bytes for each
/// tensor and way that was tried. Errors: kNotFound for a key that neither the program nor `weights` have;
/// kCorrupt for a reference that can't be followed, and for weights that do not fit the program, as verify()
/// of program_weights.h finds; kUnsupported for a key that two of the files have; kIo.
[[nodiscard]] ETSTREAM_EXPORT Result<WeightOrigins> explain(const ProgramFile& program,
                                                            const std::vector<const TensorDataFile*>& weights,
                                                            const Checkpoint& checkpoint);

/// Returns the base of an update (packed_file.h) of `file`. For a program, or a bundle with one, and a
/// checkpoint, that is what the steps of explain() give of its payloads: the update has a recipe of them, and
/// what else is in the file. For a file of weights that gives less than half of the file, and for others, it
/// is the file of `base`: see match_base() of diff.h. Time and memory: those of explain(); the checkpoint is
/// read once more for its hashes. Errors: those of explain(); kInvalidArgument for a checkpoint that gives
/// nothing.
[[nodiscard]] ETSTREAM_EXPORT Result<Base> match_base(const ByteSource& file, const UpdateBase& base);

/// Returns the names of tensors for the keys and the paths of payloads, for inspect() and its page.
[[nodiscard]] ETSTREAM_EXPORT KeyNames key_names_of(const WeightOrigins& origins);

/// A program, the checkpoint that it was exported from, and the one whose weights it is to get. All outlive
/// the call of plan().
struct Reweighting {
  const ProgramFile* program = nullptr;
  std::vector<const TensorDataFile*> weights = {};  // that it runs with
  const Checkpoint* was = nullptr;
  const Checkpoint* now = nullptr;
  /// Takes a warning of tensors of `now` that are not as in `was`, and reach no payload.
  Warn warn = {};
  /// The labels or names of payloads that stay as they are, though nothing explains them.
  std::vector<std::string> keep = {};
};

/// The plans of the files with the new weights.
struct ReweightingPlan {
  FilePlan program;
  std::vector<FilePlan> weights;  // in the order given
  std::size_t replaced = 0;       // how many payloads are made of the new checkpoint
  WeightOrigins origins;          // of the old payloads
  std::vector<std::string> kept;  // the labels of those that stay as Reweighting::keep says
};

/// Plans the files with new weights. A file keeps its size and its layout: what changes are payloads, and
/// keys that are their SHA-256, also where delegates ask for them. So the files are those of an export of the
/// network with the new weights, unless that stores constants once that have become equal. A tensor of
/// another floating-point type is cast to that of the payload; it is first cast to that of the old tensor if
/// the payload was made in that, as a bfloat16 model is quantized in bfloat16. Frequencies of rotary
/// embeddings are those of the new checkpoint's config.json, and stay if that does not say them.
///
/// Reads what explain() reads, then payloads that have hashes as keys, and the new checkpoint's tensors for
/// them; writing reads these once more. For `warn` it reads tensors of both that no payload has. Memory: as
/// of explain(). Errors: those of explain(); kUnsupported for a payload that the old checkpoint does not
/// explain; kInvalidArgument for a tensor that the new checkpoint lacks, or has in another shape; for a
/// payload whose ways give different bytes now; for two payloads that would have the same key, as an
/// export would store them once; for a name in `keep` of no payload that nothing explains.
[[nodiscard]] ETSTREAM_EXPORT Result<ReweightingPlan> plan(const Reweighting& description);

}  // namespace etstream
