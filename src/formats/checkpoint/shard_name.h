// SPDX-License-Identifier: BSD-3-Clause
//
// ShardName: the set that a file belongs to, as its name shows it: "model-00002-of-00005.safetensors".
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace etstream {

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

}  // namespace etstream
