// SPDX-License-Identifier: BSD-3-Clause
//
// Temporary files and folders beside what they will become. They are found again by their names if the
// process that made them was killed, and they are locked for as long as it lives.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/io/descriptor_posix.h"
#include "etstream/result.h"
#include "etstream/sink.h"

namespace etstream {

/// Removes the temporary files and folders for the destination `name` in `folder` whose writers are gone.
void remove_leftovers(const std::string& folder, std::string_view name);

/// Returns the path of a temporary file or folder, for any destination, that a dead writer has left in the
/// folder that `path` leads to or is in; the first by name.
[[nodiscard]] std::optional<std::string> leftover_beside(const std::string& path);

/// Returns the path that `path` leads to when its links are followed, even if the last of them points at
/// nothing yet.
[[nodiscard]] Result<std::string> follow_links(std::string path);

/// Returns the open descriptor of this process that `path` stands for, as /dev/stdout and /dev/fd/3 do;
/// nothing for a path that is no such name.
[[nodiscard]] std::optional<int> descriptor_named(std::string path);

/// A temporary file or folder. It is removed, with all in it, unless rename_to() succeeded last.
class Temporary {
 public:
  Temporary(std::string path, Descriptor descriptor)
      : path_(std::move(path)), descriptor_(std::move(descriptor)) {}
  Temporary(Temporary&& other) noexcept
      : path_(std::move(other.path_)),
        descriptor_(std::move(other.descriptor_)),
        is_there_(std::exchange(other.is_there_, false)) {}
  Temporary& operator=(Temporary&&) = delete;
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  ~Temporary();

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// Returns the file's or the folder's descriptor, which holds the lock.
  [[nodiscard]] int descriptor() const noexcept { return descriptor_.get(); }
  /// Closes the descriptor, which releases the lock.
  void close() noexcept { descriptor_ = Descriptor(); }
  /// Returns whether it worked; errno says why not.
  [[nodiscard]] bool rename_to(const std::string& destination) noexcept;
  /// Undoes rename_to(). Returns whether it worked; errno says why not.
  [[nodiscard]] bool rename_back_from(const std::string& destination) noexcept;
  /// Puts this file at `destination`, and what is there under the temporary name, which is removed at the
  /// end. Returns false where nothing is there, or the file system can't exchange names; errno says why.
  [[nodiscard]] bool exchange_with(const std::string& destination) noexcept;

 private:
  std::string path_;
  Descriptor descriptor_;
  bool is_there_ = true;
};

/// Creates an empty file beside `destination`, after removing those that killed processes left for the same
/// destination.
[[nodiscard]] Result<Temporary> create_temporary_file(const std::string& destination);

/// Returns the error of a file or a folder that can't be made beside `destination`, because of what is there.
/// Makes nothing.
[[nodiscard]] Result<void> check_room_beside(const std::string& destination);

/// Gives the new file or folder the owner, the group and the permissions of the one that it will replace. A
/// process that may not change owners stays the owner. If permissions can't be changed, the present ones stay
/// if they allow others nothing more.
[[nodiscard]] Result<void> keep_owner_and_permissions(int fd, const std::string& destination,
                                                      const Warn& warn);

inline constexpr std::string_view kCannotSyncFolder = "cannot sync the folder of";
inline constexpr std::string_view kCompleteButNotSynced =
    "what was written is complete, but its folder could not be synced:";

/// Syncs the names in the folder that `destination` is in. `doing` is one of the two above, for an error.
[[nodiscard]] Result<void> sync_folder_of(const std::string& destination, std::string_view doing,
                                          const Warn& warn);

/// Warns of errno's value `error`, by which a file system says that it can't sync.
void warn_of_no_sync(const std::string& destination, int error, const Warn& warn);

/// Returns the error if a file can't replace `destination`, from errno's value `error`. Adds advice if that
/// error is permanent.
[[nodiscard]] Error replacing_error(int error, const std::string& destination);

/// A folder that appears whole or not at all: a temporary one beside its destination. It is removed with all
/// in it unless it is committed.
class AtomicFolder final : public PendingOutput {
 public:
  /// `destination` is not there yet, or an empty folder. With options.sync, all in it is on the disk before
  /// it appears.
  [[nodiscard]] static Result<std::unique_ptr<AtomicFolder>> create(const std::string& destination,
                                                                    const FileSinkOptions& options);

  /// Returns the path at which to write the file that will be `name` in the folder. Error: that of
  /// path_in_folder().
  [[nodiscard]] Result<std::string> path_of(const std::string& name) const;
  /// Returns `error`, about a file in the folder, with the name that the file would have had.
  [[nodiscard]] Error in_terms_of_destination(Error error) const;

  Result<void> prepare() override;
  Result<void> commit() override;
  Result<void> make_durable() override;
  Result<void> take_back() override;

 private:
  AtomicFolder(std::string destination, Temporary temporary, const FileSinkOptions& options)
      : destination_(std::move(destination)),
        temporary_(std::move(temporary)),
        sync_(options.sync),
        warn_(options.warn) {}

  const std::string destination_;
  Temporary temporary_;
  bool sync_;
  const Warn warn_;
  bool is_prepared_ = false;
  bool is_committed_ = false;
  std::optional<unsigned> replaced_mode_;  // the permissions of the empty folder that this has replaced
};

}  // namespace etstream
