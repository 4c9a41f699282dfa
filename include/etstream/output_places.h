// SPDX-License-Identifier: BSD-3-Clause
//
// OutputPlaces: the places of a command's outputs, so that no two of them become one file.
//
//   etstream::OutputPlaces places;
//   if (const auto added = places.add("model.pte"); !added) return added.error();
//   if (const auto added = places.add("./model.pte"); !added) return added.error();  // an error
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "etstream/byte_source.h"
#include "etstream/export.h"
#include "etstream/result.h"

namespace etstream {

/// Compares what the outputs will be, whether or not anything is there yet: a path by the identity of its
/// folder and the name in it, with links followed; a file that is written in place by its own identity. Names
/// that differ in ASCII's capital letters alone count as one on any file system, as some ignore the case. Not
/// for several threads at once.
class ETSTREAM_EXPORT OutputPlaces {
 public:
  /// Adds an output that will replace what is at `path`, which may name an open descriptor (/dev/stdout).
  /// Errors: kInvalidArgument where an earlier output goes there; kIo for a loop of links.
  [[nodiscard]] Result<void> add(const std::string& path);
  /// Adds an output that is written in place, to the file `file`. `name` stands for it in messages. Error:
  /// kInvalidArgument where an earlier output is that file.
  [[nodiscard]] Result<void> add(const FileIdentity& file, const std::string& name);

 private:
  using FileKey = std::pair<std::uint64_t, std::uint64_t>;  // device and inode

  /// The name and the path of each, by its folder and the name in small letters.
  std::map<std::pair<FileKey, std::string>, std::pair<std::string, std::string>> names_;
  std::map<FileKey, std::string> replaced_;  // files that are at these names now
  std::map<FileKey, std::string> in_place_;
};

}  // namespace etstream
