// SPDX-License-Identifier: BSD-3-Clause
//
// The weights in a folder.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "etstream/checkpoint.h"
#include "etstream/result.h"

namespace etstream {

[[nodiscard]] bool is_folder(const std::string& path);
/// Returns whether there is a regular file at `path`, or a link to one.
[[nodiscard]] bool is_file(const std::string& path);

/// Returns the path without parts that change nothing: "a/./b" becomes "a/b".
[[nodiscard]] std::string normal_path(const std::string& path);

/// Returns the files that `folder` stands for: one file, an index, or the files of a set. Prefers what
/// transformers loads from a folder: the file that config.json names, model.safetensors, its index,
/// pytorch_model.bin, its index. Otherwise takes the only index, file or set, by the endings of names.
/// Errors: kInvalidArgument if there is none, or several, which it lists; those of reading the folder and
/// config.json.
[[nodiscard]] Result<std::vector<std::string>> files_of_folder(const std::string& folder,
                                                               const OpenFile& open_file);

/// Returns the sorted paths of the regular files in a folder whose names have one of these endings. `folder`
/// ends with '/' or is "".
[[nodiscard]] Result<std::vector<std::string>> files_in(const std::string& folder, std::string_view ending);

}  // namespace etstream
