// SPDX-License-Identifier: BSD-3-Clause
//
// ShardName: what the name of a file says of the set that it belongs to, "model-00002-of-00005.safetensors".
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

  /// The path of another file of the set.
  [[nodiscard]] std::string path_of(std::uint64_t other) const;
  /// A text that all files of the set have, and no others: "out/model-*-of-00005.safetensors".
  [[nodiscard]] std::string set() const { return begin + "*" + end; }
};

/// Returns none for a name without a number and a count of at least 2 that it is not over. A symbolic link
/// whose own name has none goes by the name of its file.
[[nodiscard]] std::optional<ShardName> shard_name(const std::string& path);

}  // namespace etstream
