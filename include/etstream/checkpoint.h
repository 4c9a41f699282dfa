// SPDX-License-Identifier: BSD-3-Clause
//
// A checkpoint: the tensors of a model by name, read in place from the file formats in which weights are
// kept.
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
#include "etstream/checkpoint_tensor.h"
#include "etstream/export.h"
#include "etstream/result.h"
#include "etstream/scalar_type.h"
#include "etstream/tensor_data.h"

namespace etstream {

/// Opens the file at a path for reading.
using OpenFile = std::function<Result<ByteSource>(const std::string& path)>;

/// Options of the functions that open files of weights.
struct CheckpointOptions {
  /// Opens each file that is read, so that callers can see which these are.
  OpenFile open_file = &ByteSource::file;
  /// Takes each file that is given by itself, without the others of its set; of an index, the files that are
  /// there.
  bool partial = false;
};

/// Opens the checkpoint at `path`. Its format is detected from its content: safetensors; the index of a
/// sharded one (model.safetensors.index.json), whose shards are in the same folder; GGUF, with the files that
/// follow if it is the first of several (split.no, split.count); a program (.pte), whose constants and named
/// data are the tensors; tensor data (.ptd), with the other shards if it is the first of several
/// (NAME-00001-of-00003.ptd); a package (.ptn); a file that torch.save or torch.export.save wrote (.pth,
/// .bin, .pt2), whose pickle is read as data and never executed. A folder stands for the weights in it: those
/// that transformers loads (model.safetensors, or model.safetensors.index.json), or else the only ones there.
/// No tensor's bytes are read, except those of a program's constants without a name, which are named by their
/// SHA-256. Errors: kNotFound, kIo; kUnsupported for another kind of file; kCorrupt, naming file, offset,
/// expected and found, also for files of a set that contradict each other; kInvalidArgument for a file of a
/// set without the others, unless `partial`, and for a folder with no weights, or with several; kTooLarge for
/// a dimension over 2^31 - 1.
[[nodiscard]] ETSTREAM_EXPORT Result<Checkpoint> open_checkpoint(const std::string& path,
                                                                 const CheckpointOptions& options = {});

/// Opens several, as open_checkpoint() does one. All files of a set may be given, in any order, in the place
/// of its index or its first file.
[[nodiscard]] ETSTREAM_EXPORT Result<std::vector<Checkpoint>> open_checkpoints(
    const std::vector<std::string>& paths, const CheckpointOptions& options = {});

/// The files that paths stand for.
struct WeightPaths {
  std::vector<std::string> files;  // in the order given, those that a path stands for in its place
  std::vector<Error> problems;     // that open_checkpoints() has with their sets
};

/// Finds the files of the sets that `paths` belong to, and checks that these are complete. Errors: those of
/// open_checkpoints() that are about one file.
[[nodiscard]] ETSTREAM_EXPORT Result<WeightPaths> find_weights(const std::vector<std::string>& paths,
                                                               const CheckpointOptions& options = {});

/// Returns the files of find_weights(). Errors: also those that it reports as problems.
[[nodiscard]] ETSTREAM_EXPORT Result<std::vector<std::string>> whole_sets(
    const std::vector<std::string>& paths, const CheckpointOptions& options = {});

/// Keeps only the tensors whose names match one of `globs`, in which * matches any run of characters and ?
/// any single one. Error: kNotFound for a glob that matches no tensor.
[[nodiscard]] ETSTREAM_EXPORT Result<void> select(Checkpoint& checkpoint,
                                                  const std::vector<std::string>& globs);

/// The type that floating-point tensors with a matching name are converted to.
struct DtypeRule {
  std::string glob = "*";
  ScalarType type = ScalarType::kFloat32;
};

/// Converts floating-point tensors while they are read, each by the last rule that it matches; others stay as
/// they are. Weights of FP8 with scales are first multiplied by these, as transformers does, in the type of
/// the model in config.json beside their file; the scales are taken out. The bits are those that torch 2.13
/// gives: values are rounded to nearest, ties to even, and float64 is first rounded to float32; too large a
/// value becomes infinity, or what torch makes of it in a type without infinity. Errors: kInvalidArgument for
/// a type that is not floating-point, kNotFound for a glob, other than "*", that matches no tensor,
/// kUnsupported for other quantised numbers, whose scales are not applied.
[[nodiscard]] ETSTREAM_EXPORT Result<void> convert(Checkpoint& checkpoint,
                                                   const std::vector<DtypeRule>& rules);

/// Returns all tensors of several checkpoints, in the order given.
[[nodiscard]] ETSTREAM_EXPORT Result<Checkpoint> join(std::vector<Checkpoint> checkpoints);

/// Keeps one tensor of each name, after comparing the bytes of tensors with the same name. Errors:
/// kInvalidArgument, naming both files, where their bytes or layouts differ; read errors.
[[nodiscard]] ETSTREAM_EXPORT Result<void> merge(Checkpoint& checkpoint);

/// Opens several as one: all their tensors, each name once. Errors: those of open_checkpoints() and merge().
[[nodiscard]] ETSTREAM_EXPORT Result<Checkpoint> open_joined_checkpoint(
    const std::vector<std::string>& paths, const CheckpointOptions& options = {});

/// Options of describe_tensor_data().
struct TensorDataOptions {
  /// Stores equal bytes once, under all names that have them. To find them, tensors of equal size are read:
  /// some bytes of each, and all bytes of those that agree in these.
  bool share_equal = true;
  /// Accepts tensors of types that ExecuTorch lacks, such as quantised blocks, as data without a layout,
  /// which a backend requests by name.
  bool allow_opaque = false;
  std::uint32_t segment_alignment = TensorData().segment_alignment;
};

/// Describes the .ptd file of the tensors, in their order, for planning. Errors: kUnsupported for a type that
/// ExecuTorch lacks, unless allow_opaque is set; read errors; with share_equal, kTooLarge if tensors of equal
/// size overlap so that each byte would be read more than 4 times on average.
[[nodiscard]] ETSTREAM_EXPORT Result<TensorData> describe_tensor_data(Checkpoint checkpoint,
                                                                      const TensorDataOptions& options = {});

}  // namespace etstream
