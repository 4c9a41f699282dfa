// SPDX-License-Identifier: BSD-3-Clause
//
// A checkpoint: the tensors of a model by name, in files of any kind that people keep weights in, read where
// they lie.
//
//   auto weights = etstream::open_checkpoint("model.safetensors.index.json");
//   if (!weights) return weights.error();
//   for (const etstream::CheckpointTensor& tensor : weights->tensors) std::puts(tensor.name.c_str());
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/export.h"
#include "etstream/result.h"
#include "etstream/scalar_type.h"
#include "etstream/tensor_data.h"
#include "etstream/tensor_layout.h"

namespace etstream {

struct CheckpointTensor {
  std::string name;
  /// As the file spells it: "BF16", "Q4_0"; "" for data that a backend knows, which has no type.
  std::string type;
  /// None for such data, and for types that ExecuTorch has no tensors of, such as quantised blocks. Otherwise
  /// `data` is as long as the layout says.
  std::optional<TensorLayout> layout;
  ByteSource data;
};

struct Checkpoint {
  std::vector<std::string> files;         // the paths of all that was opened
  std::vector<CheckpointTensor> tensors;  // in the order in which their bytes lie in the files
};

/// Opens the file at a path to be read.
using OpenFile = std::function<Result<ByteSource>(const std::string& path)>;

/// Opens the file at `path`, told by its content: safetensors; the index of a sharded one
/// (model.safetensors.index.json), whose shards lie beside it; GGUF, with the files that follow where it is
/// the first of several (NAME-00001-of-00003.gguf); a program (.pte), whose constants and named data are the
/// tensors; tensor data (.ptd), with the other shards where it is the first of several
/// (NAME-00001-of-00003.ptd); a package (.ptn). No tensor's bytes are read, but those of a program's
/// constants that have no name, which go by their SHA-256. Errors: kNotFound, kIo; kUnsupported for another
/// kind of file; kCorrupt, naming file, offset, expected and found; kTooLarge for a dimension over 2^31 - 1.
/// `open_file` gives each file for its path, so that callers can see what is read.
[[nodiscard]] ETSTREAM_EXPORT Result<Checkpoint> open_checkpoint(
    const std::string& path, const OpenFile& open_file = &ByteSource::file);

/// Keeps only the tensors whose name matches one of `globs`, in which * stands for any run of characters and
/// ? for any one. Error: kNotFound for one that matches no tensor.
[[nodiscard]] ETSTREAM_EXPORT Result<void> select(Checkpoint& checkpoint,
                                                  const std::vector<std::string>& globs);

/// The type that floating-point tensors with a matching name are converted to.
struct DtypeRule {
  std::string glob = "*";
  ScalarType type = ScalarType::kFloat32;
};

/// Has tensors of floating-point types converted while they are read, each by the last rule that it matches;
/// others stay as they are. The bits are those that torch 2.13 gives: values are rounded to the nearest, of
/// two to the even one, those of float64 to float32 first; what is too large becomes infinity, or where there
/// is none what torch makes of it. Error: kInvalidArgument for a type that is not floating-point.
[[nodiscard]] ETSTREAM_EXPORT Result<void> convert(Checkpoint& checkpoint,
                                                   const std::vector<DtypeRule>& rules);

/// All tensors of several checkpoints, in the order given.
[[nodiscard]] ETSTREAM_EXPORT Result<Checkpoint> join(std::vector<Checkpoint> checkpoints);

/// Keeps one tensor of each name; the bytes of those with one name are compared. Errors: kInvalidArgument,
/// naming both, where those differ or their layouts do; those of reading.
[[nodiscard]] ETSTREAM_EXPORT Result<void> merge(Checkpoint& checkpoint);

struct TensorDataOptions {
  /// Stores equal bytes once, under all names that have them, which takes reading tensors of the same size:
  /// some bytes of each, and all of those that agree in these.
  bool share_equal = true;
  /// Takes tensors of types that ExecuTorch has none of, quantised blocks for one, as data without a layout,
  /// which a backend asks for by name.
  bool allow_opaque = false;
  std::uint32_t segment_alignment = TensorData().segment_alignment;
};

/// The .ptd file of the tensors, in their order, described to be planned. Errors: kUnsupported for a type
/// that ExecuTorch has none of, unless it is allowed; those of reading.
[[nodiscard]] ETSTREAM_EXPORT Result<TensorData> describe_tensor_data(Checkpoint checkpoint,
                                                                      const TensorDataOptions& options = {});

}  // namespace etstream
