// SPDX-License-Identifier: BSD-3-Clause
//
// The files that a path stands for in a report: one file, or the files of a checkpoint.
#pragma once

#include <optional>
#include <string>

#include "etstream/byte_source.h"
#include "etstream/checkpoint.h"
#include "etstream/result.h"
#include "formats/checkpoint/weight_sets.h"

namespace etstream {

struct ReportedPath {
  std::string path;          // of the file; of a folder with one file, of that
  ByteSource file;           // or the index; nothing for a folder with several files
  bool has_several = false;  // whether it is an index, or a folder with several files
};

/// Opens a path for a report. Errors: those of opening the path; those of a folder without weights, or with
/// several.
[[nodiscard]] Result<ReportedPath> reported_path(const std::string& path, const OpenFile& open_file);

/// Returns the place of a file among those of its set; nothing for a file that is no part of one. Errors:
/// those of opening a GGUF file, which names its own place.
[[nodiscard]] Result<std::optional<SetPlace>> place_in_set(const ReportedPath& path,
                                                           const OpenFile& open_file);

}  // namespace etstream
