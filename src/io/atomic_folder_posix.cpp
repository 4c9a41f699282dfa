// SPDX-License-Identifier: BSD-3-Clause
#include "io/atomic_folder_posix.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "base/text.h"
#include "base/try.h"
#include "io/temporary_posix.h"

namespace etstream {
namespace {

Error in_use(const std::string& destination) {
  return make_error(ErrorCode::kInvalidArgument, "cannot write the folder ", quote(destination),
                    ": it exists, and is not an empty folder");
}

}  // namespace

AtomicFolder::AtomicFolder(std::string destination, Temporary temporary)
    : destination_(std::move(destination)),
      temporary_(std::move(temporary.path)),
      descriptor_(std::move(temporary.descriptor)) {}

AtomicFolder::AtomicFolder(AtomicFolder&& other) noexcept
    : destination_(std::move(other.destination_)),
      temporary_(std::exchange(other.temporary_, {})),
      descriptor_(std::move(other.descriptor_)) {}

AtomicFolder::~AtomicFolder() {
  if (!temporary_.empty()) remove_temporary(temporary_);
}

Result<AtomicFolder> AtomicFolder::create(const std::string& destination) {
  std::string name = destination.substr(0, destination.find_last_not_of('/') + 1);
  std::error_code error;
  const auto status = std::filesystem::status(name, error);
  const bool exists = std::filesystem::exists(status);
  if (name.empty() ||
      (exists && (!std::filesystem::is_directory(status) || !std::filesystem::is_empty(name, error)))) {
    return in_use(destination);
  }
  ETSTREAM_ASSIGN(Temporary temporary, create_temporary_folder(name));
  return AtomicFolder(std::move(name), std::move(temporary));
}

Result<void> AtomicFolder::publish(bool sync) {
  // One call for all the files in it, which may be thousands.
  if (sync && ::syncfs(descriptor_.get()) != 0) return system_error(errno, "cannot sync", destination_);
  if (::rename(temporary_.c_str(), destination_.c_str()) != 0) {
    if (errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR) return in_use(destination_);
    return system_error(errno, "cannot replace", destination_);
  }
  temporary_.clear();
  return sync ? sync_folder_of(destination_) : Result<void>();
}

}  // namespace etstream
