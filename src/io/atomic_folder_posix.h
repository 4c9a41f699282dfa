// SPDX-License-Identifier: BSD-3-Clause
//
// A folder that appears whole or not at all.
#pragma once

#include <string>
#include <utility>

#include "etstream/result.h"
#include "io/temporary_posix.h"

namespace etstream {

/// A temporary folder beside its destination. It is removed with all in it unless publish() succeeds.
class AtomicFolder {
 public:
  /// `destination` is not there yet, or an empty folder.
  [[nodiscard]] static Result<AtomicFolder> create(const std::string& destination);

  /// Where to write what will be `name` in the folder.
  [[nodiscard]] std::string path_of(const std::string& name) const { return temporary_.path() + "/" + name; }

  /// `error` about a file in it, with the name that the file would have had.
  [[nodiscard]] Error in_terms_of_destination(Error error) const;
  /// Renames the folder to its destination; with `sync`, all in it is on the disk before.
  [[nodiscard]] Result<void> publish(bool sync);

 private:
  AtomicFolder(std::string destination, Temporary temporary)
      : destination_(std::move(destination)), temporary_(std::move(temporary)) {}

  std::string destination_;
  Temporary temporary_;
};

}  // namespace etstream
