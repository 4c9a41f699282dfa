// SPDX-License-Identifier: BSD-3-Clause
//
// The one way from a name in a file to a path: a file must not choose which other files are read or written.
#pragma once

#include <string>
#include <string_view>

#include "core/base/text.h"
#include "core/base/try.h"

namespace etstream {

/// Returns whether `name` is that of a file in a folder, and no path: not empty, "." or "..", of at most 255
/// bytes, without slashes, backslashes and zero bytes.
[[nodiscard]] inline bool is_file_name(std::string_view name) {
  constexpr std::size_t kLongest = 255;  // on every file system that matters
  return !name.empty() && name != "." && name != ".." && name.size() <= kLongest &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
}

/// Returns the path of the file `name` in `folder`, which may end with '/'; "" is the current folder. Error:
/// kInvalidArgument unless is_file_name().
[[nodiscard]] inline Result<std::string> path_in_folder(std::string_view folder, std::string_view name) {
  if (!is_file_name(name)) {
    return make_error(ErrorCode::kInvalidArgument, "expected the name of a file in {}, and no path, found {}",
                      folder.empty() ? "the folder" : quote(folder), quote(name));
  }
  std::string path(folder);
  if (!path.empty() && !path.ends_with('/')) path += '/';
  path += name;
  return path;
}

}  // namespace etstream
