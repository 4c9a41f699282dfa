// SPDX-License-Identifier: BSD-3-Clause
#include "io/atomic_folder_posix.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include "base/text.h"
#include "base/try.h"
#include "io/file_calls_posix.h"

namespace etstream {
namespace {

Error in_use(const std::string& destination) {
  return refusal(ErrorCode::kInvalidArgument, "cannot write the folder", destination,
                 "it exists, and is not an empty folder");
}

Result<bool> is_empty(const std::string& folder) {
  std::error_code error;
  bool empty = false;
  do {
    empty = std::filesystem::is_empty(folder, error);
  } while (error == std::errc::interrupted);
  if (error) return system_error(error.value(), "cannot look into the folder", folder);
  return empty;
}

}  // namespace

Result<AtomicFolder> AtomicFolder::create(const std::string& destination) {
  std::string name = destination.substr(0, destination.find_last_not_of('/') + 1);
  std::error_code error;
  const auto status = std::filesystem::status(name, error);
  if (name.empty()) return in_use(destination);
  if (std::filesystem::exists(status)) {
    if (!std::filesystem::is_directory(status)) return in_use(destination);
    ETSTREAM_ASSIGN(const bool empty, is_empty(name));
    if (!empty) return in_use(destination);
  }
  ETSTREAM_ASSIGN(Temporary temporary, create_temporary_folder(name));
  return AtomicFolder(std::move(name), std::move(temporary));
}

Error AtomicFolder::in_terms_of_destination(Error error) const {
  const auto rename_in = [this](std::string& words) {
    const auto place = words.find(temporary_.path());
    if (place != std::string::npos) words.replace(place, temporary_.path().size(), destination_);
  };
  rename_in(error.message);
  if (error.file) rename_in(*error.file);
  return error;
}

Result<void> AtomicFolder::publish(bool sync) {
  ETSTREAM_TRY(keep_owner_and_permissions(temporary_.descriptor(), destination_));
  // One call for all the files in it, which may be thousands.
  if (sync && retried([&] { return sync_file_system(temporary_.descriptor()); }) != 0) {
    return system_error(errno, "cannot sync", destination_);
  }
  if (!temporary_.rename_to(destination_)) {
    if (errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR) return in_use(destination_);
    return system_error(errno, "cannot replace", destination_);
  }
  return sync ? sync_folder_of(destination_) : Result<void>();
}

}  // namespace etstream
