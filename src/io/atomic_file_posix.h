// SPDX-License-Identifier: BSD-3-Clause
//
// A file that appears whole or not at all.
#pragma once

#include <string>
#include <utility>

#include "io/temporary_posix.h"

namespace etstream {

/// A temporary file beside its destination, held by a lock on it for as long as it is being written.
/// It is removed unless publish() succeeds.
class AtomicFile {
 public:
  /// Creates the temporary file, after removing those that killed processes left for the same
  /// destination. `destination` names a regular file or nothing yet; links are followed.
  [[nodiscard]] static Result<AtomicFile> create(const std::string& destination);

  [[nodiscard]] int descriptor() const noexcept { return temporary_.descriptor(); }
  /// The destination, for messages.
  [[nodiscard]] const std::string& path() const noexcept { return destination_; }

  /// Renames the file over the destination; with `sync`, file and folder are on the disk afterwards.
  [[nodiscard]] Result<void> publish(bool sync);

 private:
  AtomicFile(std::string destination, Temporary temporary)
      : destination_(std::move(destination)), temporary_(std::move(temporary)) {}

  std::string destination_;
  Temporary temporary_;
};

}  // namespace etstream
