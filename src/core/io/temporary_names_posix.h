// SPDX-License-Identifier: BSD-3-Clause
//
// The names of temporary files and folders, by which they are found again if the process that made them was
// killed, and the lock that tells that it still lives.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace etstream {

inline constexpr std::size_t kLongestName = 255;  // of a file in a folder, on every file system that matters

/// A path in two parts: the folder, which ends in '/' or is empty for the current one, and the name in it.
struct SplitPath {
  std::string folder;
  std::string name;
};

[[nodiscard]] SplitPath split_path(const std::string& path);

/// Returns the name of a temporary file for the destination `name`, beside it. `digits` are 16.
[[nodiscard]] std::string temporary_name(std::string_view name, std::string_view digits);

/// Takes the lock that says that a process is writing the file or folder. errno is EWOULDBLOCK if another has
/// it, and something else if the file system has no locks.
[[nodiscard]] bool try_lock(int fd);

void remove_with_content(const std::string& path) noexcept;

/// Removes the temporary files and folders for the destination `name` in `folder` whose writers are gone.
void remove_leftovers(const std::string& folder, std::string_view name);

/// Returns the path of a temporary file or folder, for any destination, that a dead writer has left in the
/// folder that `path` leads to or is in; the first by name.
[[nodiscard]] std::optional<std::string> leftover_beside(const std::string& path);

}  // namespace etstream
