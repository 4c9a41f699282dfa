// SPDX-License-Identifier: BSD-3-Clause
//
// Files of weights of any format, and sets: weights that are in several files. The files of a set are known
// from an index that names them, as huggingface_hub writes it (model.safetensors.index.json): {"metadata":
// {"total_size": 10}, "weight_map": {"NAME": "FILE", ...}}; in GGUF from split.no, split.count and
// split.tensors.count; otherwise from the names of the files, NAME-00002-of-00005.safetensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/checkpoint.h"
#include "etstream/file_kind.h"
#include "etstream/result.h"
#include "formats/gguf/gguf.h"
#include "formats/segments/file_kind.h"

namespace etstream {

/// A file of weights, open.
struct WeightFile {
  std::string path;
  ByteSource file;
  FileKind kind = FileKind::kSafetensors;
  std::vector<CheckpointTensor> tensors;  // in file order
  std::optional<GgufSplit> split;         // where the file itself says that it is one of several
  std::uint32_t version = 0;              // of the format GGUF; 0 of others
  ByteSource metadata = {};               // of GGUF, as the file has it
};

/// Returns whether an error is about a file, so that another file may be read instead. An error is not about
/// a file if the caller asked to stop, or memory ran out.
[[nodiscard]] inline bool is_about_file(const Error& error) noexcept {
  return error.code != ErrorCode::kInterrupted && error.code != ErrorCode::kOutOfMemory;
}

/// Opens a file by its content. Errors: kUnsupported for another kind of file; those of opening that kind.
[[nodiscard]] Result<WeightFile> open_weight_file(const std::string& path, const ByteSource& file);
/// Opens a file of a kind that file_kind() told.
[[nodiscard]] Result<WeightFile> open_weight_file(const std::string& path, const ByteSource& file,
                                                  FileKind kind);

/// The index of a checkpoint in several files.
struct CheckpointIndex {
  /// The names of the tensors of each file, by its name. The files are beside the index.
  std::map<std::string, std::vector<std::string>, std::less<>> files;
  std::optional<std::uint64_t> total_size;  // of the tensors' bytes
};

/// Returns nothing for an object without a weight_map. Errors: kCorrupt for a file that is not JSON, for a
/// name that is no file's beside the index, and for a tensor that comes twice; those of reading.
[[nodiscard]] Result<std::optional<CheckpointIndex>> read_checkpoint_index(const ByteSource& file);

/// The number in the name of a file: "model-00002-of-00005.safetensors".
struct ShardName {
  std::string begin;  // "out/model-"
  std::string end;    // "-of-00005.safetensors"
  std::size_t digits = 0;
  std::uint32_t number = 0;  // as written: most count from 1, some from 0
  std::uint32_t count = 0;   // at least 2

  /// Returns the path of another file of the set.
  [[nodiscard]] std::string path_of(std::uint64_t other) const;
  /// Returns a text that all files of the set have, and no others: "out/model-*-of-00005.safetensors".
  [[nodiscard]] std::string set() const { return begin + "*" + end; }
};

/// Returns nothing for a name without a number and a count that is at least 2 and at least the number. A
/// symbolic link whose own name has none goes by the name of its file.
[[nodiscard]] std::optional<ShardName> shard_name(const std::string& path);

/// Returns whether a file of that kind can be one of several.
[[nodiscard]] bool has_sets(FileKind kind) noexcept;

/// The place of a file among the files of its set.
struct SetPlace {
  std::string set;                   // a text that all files of the set have, and no others
  std::uint64_t number = 0;          // from 1 on
  std::uint64_t count = 0;           // at least 2
  std::optional<ShardName> name;     // where the names of files number them
  bool is_from_zero = false;         // whether names begin with 0
  std::vector<std::string> members;  // where an index names the files: their paths, in order
  std::string index;                 // the path of an index that names the file; "" for none

  /// Returns the path of another file of the set, or "file 3" if its name is not known.
  [[nodiscard]] std::string path_of(std::uint64_t other) const;
};

/// Describes the place: "file 2 of 5 of a set".
[[nodiscard]] std::string describe(const SetPlace& place);

/// Returns the place of a GGUF file that says that it is one of several. Uses the file's name if it agrees on
/// the number of files.
[[nodiscard]] SetPlace place_of_split(const std::string& path, const GgufSplit& split);

/// Returns the place of a file; nothing for one that is no part of a set. `split` is what a GGUF file says
/// about itself. An index beside the file that can't be read is ignored. Errors: kInterrupted, kOutOfMemory.
[[nodiscard]] Result<std::optional<SetPlace>> place_of_file(const std::string& path, FileKind kind,
                                                            const std::optional<GgufSplit>& split,
                                                            const OpenFile& open_file);

/// A path that was given, and the files that it stands for.
struct GivenWeights {
  std::string path;
  std::string index;  // the path of the index that names the files; "" for none
  std::vector<WeightFile> files;
};

struct OpenedWeights {
  std::vector<GivenWeights> given;  // in the order of the paths
  std::vector<Error> problems;      // of sets: what is missing, can't be read, or contradicts itself
  /// Problems that loaders of an index ignore: its sum of bytes is wrong.
  std::vector<Error> flaws;
  std::vector<Error> warnings;  // tensors that an index does not list
};

/// The treatment of files that are no part of a set, or can't be opened as weights: they are an error, or are
/// left without tensors.
enum class OtherFiles { kRefused, kLeft };

/// Opens the files that each of `paths` stands for, with those that complete their sets. Judges whether the
/// files are all of a set, and belong together. With options.partial, sets are not completed, and no problem
/// is found with them. Errors: those about a file that is given.
[[nodiscard]] Result<OpenedWeights> open_weights(const std::vector<std::string>& paths,
                                                 const CheckpointOptions& options,
                                                 OtherFiles others = OtherFiles::kRefused);

/// Returns the error about a file that is one of several for model parallelism: consolidated.01.pth, or the
/// first one beside the second. Each has slices of the same tensors. Returns nothing for others.
[[nodiscard]] std::optional<Error> flaw_of_parallel_part(const std::string& path);

}  // namespace etstream
