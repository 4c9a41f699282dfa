// SPDX-License-Identifier: BSD-3-Clause
//
// Temporary files and folders beside what they will become, under names that tell whose they are, locked for
// as long as their writer lives.
#pragma once

#include <string>

#include "io/descriptor_posix.h"

namespace etstream {

/// A path in two parts: the folder, which ends in '/' or is empty for the current one, and the name in it.
struct Place {
  std::string folder;
  std::string name;
};
[[nodiscard]] Place place_of(const std::string& path);

/// Where `path` leads when its links are followed, also if the last of them points at nothing yet.
[[nodiscard]] Result<std::string> follow_links(std::string path);

struct Temporary {
  std::string path;
  Descriptor descriptor;  // of the file, or of the folder; holds the lock
};

/// Creates an empty one beside `destination`, after removing those that killed processes left for the same
/// destination.
[[nodiscard]] Result<Temporary> create_temporary_file(const std::string& destination);
[[nodiscard]] Result<Temporary> create_temporary_folder(const std::string& destination);

/// Removes it, and all in it.
void remove_temporary(const std::string& path) noexcept;

/// Has the folder that `destination` is in on the disk, after a rename.
[[nodiscard]] Result<void> sync_folder_of(const std::string& destination);

}  // namespace etstream
