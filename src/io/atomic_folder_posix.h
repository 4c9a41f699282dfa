// SPDX-License-Identifier: BSD-3-Clause
//
// A folder that appears whole or not at all.
#pragma once

#include <string>

#include "etstream/result.h"
#include "io/temporary_posix.h"

namespace etstream {

/// A temporary folder beside its destination. It is removed with all in it unless publish() succeeds.
class AtomicFolder {
 public:
  /// `destination` is not there yet, or an empty folder.
  [[nodiscard]] static Result<AtomicFolder> create(const std::string& destination);

  AtomicFolder(AtomicFolder&& other) noexcept;
  AtomicFolder& operator=(AtomicFolder&&) = delete;
  AtomicFolder(const AtomicFolder&) = delete;
  AtomicFolder& operator=(const AtomicFolder&) = delete;
  ~AtomicFolder();

  /// Where to write what will be `name` in the folder.
  [[nodiscard]] std::string path_of(const std::string& name) const { return temporary_ + "/" + name; }

  /// Renames the folder to its destination; with `sync`, all in it is on the disk before.
  [[nodiscard]] Result<void> publish(bool sync);

 private:
  AtomicFolder(std::string destination, Temporary temporary);

  std::string destination_;
  std::string temporary_;  // empty once it is gone
  Descriptor descriptor_;  // of the temporary folder
};

}  // namespace etstream
