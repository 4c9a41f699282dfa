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

  /// Has what was written reach the file system, which may only now say what it could not write; with `sync`,
  /// the disk.
  [[nodiscard]] Result<void> settle(bool sync);
  /// Renames the file over the destination; with `sync`, its folder is on the disk afterwards. With `keep`,
  /// what it replaces is kept until the end for take_back(), where the file system can exchange names.
  [[nodiscard]] Result<void> publish(bool sync, bool keep);
  /// Has at the destination what was there before publish(), or nothing; after publish() failed, too. Error:
  /// kIo, where that can't be done.
  [[nodiscard]] Result<void> take_back();

 private:
  AtomicFile(std::string destination, Temporary temporary)
      : destination_(std::move(destination)), temporary_(std::move(temporary)) {}

  std::string destination_;
  Temporary temporary_;
  enum class Published { kNot, kNew, kExchanged, kReplaced } published_ = Published::kNot;
};

}  // namespace etstream
