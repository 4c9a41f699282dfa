// SPDX-License-Identifier: BSD-3-Clause
//
// Names of files, of tensors and of members: the one way from a name in a file to a path, as a file must not
// choose which other files are read or written; patterns that choose names, as in a shell; and the search for
// a name that comes twice.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

/// Returns whether `pattern` matches all of `name`. In a pattern, * stands for any run of bytes, ? for any
/// byte, and every other byte for itself. Time: at most the product of their lengths.
[[nodiscard]] constexpr bool matches_glob(std::string_view pattern, std::string_view name) noexcept {
  std::size_t p = 0;
  std::size_t n = 0;
  std::size_t star = std::string_view::npos;  // the last one met, which takes as little as it can
  std::size_t resume = 0;                     // where in `name` what follows that star is tried
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

/// Returns the first name in order that comes twice, if any does. `name_of` gives the name of an element of
/// `range`, a string that lives as long as the range. Time: n log n, whatever the names are. Names are
/// compared by their hashes first, as most begin alike.
template <class Range, class NameOf = std::identity>
[[nodiscard]] std::optional<std::string_view> first_repeated(const Range& range, NameOf name_of = {}) {
  std::vector<std::pair<std::size_t, std::string_view>> keys;
  keys.reserve(range.size());
  for (const auto& each : range) {
    const std::string_view name = std::invoke(name_of, each);
    keys.emplace_back(std::hash<std::string_view>()(name), name);
  }
  std::sort(keys.begin(), keys.end());
  std::optional<std::string_view> out;
  for (std::size_t i = 1; i < keys.size(); ++i) {
    if (keys[i] == keys[i - 1] && (!out || keys[i].second < *out)) out = keys[i].second;
  }
  return out;
}

}  // namespace etstream
