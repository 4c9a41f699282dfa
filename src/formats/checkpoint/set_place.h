// SPDX-License-Identifier: BSD-3-Clause
//
// The place of a file in a set: weights that are in several files. The files of a set are known from an index
// that names them; in GGUF from split.no, split.count and split.tensors.count; otherwise from the names of
// the files, NAME-00002-of-00005.safetensors.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "etstream/checkpoint.h"
#include "etstream/file_kind.h"
#include "etstream/result.h"
#include "formats/checkpoint/checkpoint_index.h"
#include "formats/checkpoint/shard_name.h"
#include "formats/checkpoint/weight_file.h"

namespace etstream {

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

/// Finds the places of files. Holds the indexes of the folders that it has looked into.
class SetFinder {
 public:
  explicit SetFinder(const OpenFile& open_file) : open_file_(open_file) {}

  /// Returns nothing for a file that is no part of a set. `split` is what a GGUF file says about itself. An
  /// index beside the file that can't be read is ignored. Errors: kInterrupted, kOutOfMemory.
  [[nodiscard]] Result<std::optional<SetPlace>> place_of(const std::string& path, FileKind kind,
                                                         const std::optional<GgufSplit>& split);

 private:
  struct FoundIndex {
    std::string path;
    CheckpointIndex index;
  };
  Result<std::optional<SetPlace>> place_by_name(const std::string& path, FileKind kind);
  Result<void> find_indexes(const std::string& folder, std::vector<FoundIndex>& out) const;
  Result<const FoundIndex*> index_of(const std::string& path);

  const OpenFile& open_file_;
  std::map<std::string, std::vector<FoundIndex>> indexes_;  // by folder
};

}  // namespace etstream
