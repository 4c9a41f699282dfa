// SPDX-License-Identifier: BSD-3-Clause
//
// Opens sets: weights that are in several files (set_place.h), with the files that complete them. Judges
// whether the files that are open are all of a set, and belong together.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "etstream/checkpoint.h"
#include "etstream/result.h"
#include "formats/checkpoint/weight_file.h"

namespace etstream {

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

/// Opens the files that each of `paths` stands for. With options.partial, sets are not completed, and no
/// problem is found with them. Errors: those about a file that is given.
[[nodiscard]] Result<OpenedWeights> open_weights(const std::vector<std::string>& paths,
                                                 const CheckpointOptions& options,
                                                 OtherFiles others = OtherFiles::kRefused);

/// Returns the error about a file that is one of several for model parallelism: consolidated.01.pth, or the
/// first one beside the second. Each has slices of the same tensors. Returns nothing for others.
[[nodiscard]] std::optional<Error> flaw_of_parallel_part(const std::string& path);

}  // namespace etstream
