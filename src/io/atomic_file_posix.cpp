// SPDX-License-Identifier: BSD-3-Clause
#include "io/atomic_file_posix.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "base/text.h"
#include "base/try.h"

namespace etstream {
namespace {

constexpr std::string_view kSuffix = ".tmp";
constexpr std::size_t kLongestName = 255;  // of a file in a folder, on every file system that matters
constexpr std::size_t kRandomDigits = 16;

struct Place {
  std::string folder;  // ends in '/', or is empty for the current folder
  std::string name;
};

Place place_of(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return {"", path};
  return {path.substr(0, slash + 1), path.substr(slash + 1)};
}

/// What the names of all temporary files for a destination begin with.
std::string temporary_prefix(const std::string& name) {
  constexpr std::string_view kMark = ".etstream-";
  const std::size_t room = kLongestName - 1 - kMark.size() - kRandomDigits - kSuffix.size();
  return text(".", name.substr(0, room), kMark);
}

bool is_temporary(std::string_view name, std::string_view prefix) {
  return name.size() == prefix.size() + kRandomDigits + kSuffix.size() && name.starts_with(prefix) &&
         name.ends_with(kSuffix);
}

/// Where `path` leads when its links are followed, also if the last of them points at nothing yet.
Result<std::string> follow_links(std::string path) {
  constexpr int kMostLinks = 40;  // Linux's own limit
  for (int links = 0; links < kMostLinks; ++links) {
    std::array<char, 4096> target{};
    const ssize_t n = ::readlink(path.c_str(), target.data(), target.size());
    if (n < 0) return path;  // not a link, or not there
    const std::string_view link(target.data(), static_cast<std::size_t>(n));
    path = link.starts_with('/') ? std::string(link) : place_of(path).folder + std::string(link);
  }
  return system_error(ELOOP, "cannot write", path);
}

/// Takes the lock that says that a process is writing the file. A file system without locks has
/// nobody to tell apart, so there its files count as locked.
bool try_lock(int fd) { return ::flock(fd, LOCK_EX | LOCK_NB) == 0; }

void remove_leftover(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (file && try_lock(file.get())) ::unlink(path.c_str());
}

/// Removes the temporary files whose writers are gone.
void remove_leftovers(const std::string& folder, const std::string& prefix) {
  const auto close = [](DIR* open) { ::closedir(open); };
  const std::unique_ptr<DIR, decltype(close)> entries(::opendir(folder.empty() ? "." : folder.c_str()));
  if (!entries) return;
  while (const dirent* entry = ::readdir(entries.get())) {
    if (is_temporary(entry->d_name, prefix)) remove_leftover(folder + entry->d_name);
  }
}

Result<std::string> random_digits() {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::array<unsigned char, kRandomDigits> bytes{};
  if (::getentropy(bytes.data(), bytes.size()) != 0) {
    return make_error(ErrorCode::kIo, "cannot get random bytes for a temporary file's name");
  }
  std::string digits;
  for (const unsigned char byte : bytes) digits += kDigits[byte & 15];
  return digits;
}

/// Whether `path` still names the file behind `fd`.
bool names(const std::string& path, int fd) {
  struct stat by_path {};
  struct stat by_descriptor {};
  return ::lstat(path.c_str(), &by_path) == 0 && ::fstat(fd, &by_descriptor) == 0 &&
         by_path.st_dev == by_descriptor.st_dev && by_path.st_ino == by_descriptor.st_ino;
}

/// Gives the new file the permissions of the one that it will replace.
Result<void> keep_permissions(int fd, const std::string& destination) {
  struct stat existing {};
  if (::stat(destination.c_str(), &existing) != 0) return {};
  if (::fchmod(fd, existing.st_mode & 07777) != 0) {
    return system_error(errno, "cannot set the permissions of the file that replaces", destination);
  }
  return {};
}

Result<void> sync_folder(const std::string& folder, const std::string& destination) {
  const std::string path = folder.empty() ? "." : folder;
  const Descriptor opened(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // EINVAL: the file system (a network or FUSE one) has no fsync for folders.
  if (!opened || (::fsync(opened.get()) != 0 && errno != EINVAL)) {
    return system_error(errno, "the file is complete, but its folder could not be synced:", destination);
  }
  return {};
}

}  // namespace

AtomicFile::AtomicFile(std::string destination, std::string temporary, Descriptor file)
    : destination_(std::move(destination)), temporary_(std::move(temporary)), file_(std::move(file)) {}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : destination_(std::move(other.destination_)),
      temporary_(std::exchange(other.temporary_, {})),
      file_(std::move(other.file_)) {}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Result<AtomicFile> AtomicFile::create(const std::string& destination) {
  ETSTREAM_ASSIGN(const std::string resolved, follow_links(destination));
  const auto [folder, name] = place_of(resolved);
  const std::string prefix = temporary_prefix(name);
  remove_leftovers(folder, prefix);
  constexpr int kAttempts = 16;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    ETSTREAM_ASSIGN(const std::string digits, random_digits());
    const std::string temporary = text(folder, prefix, digits, kSuffix);
    Descriptor file(::open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!file) {
      if (errno == EEXIST || errno == EINTR) continue;
      return system_error(errno, "cannot create a file for", destination);
    }
    const bool locked = try_lock(file.get());
    AtomicFile created(resolved, temporary, std::move(file));
    // Another process may have taken the new file for a leftover in the moment before it was locked.
    if (!locked && errno == EWOULDBLOCK) continue;
    if (!names(temporary, created.descriptor())) continue;
    ETSTREAM_TRY(keep_permissions(created.descriptor(), resolved));
    return created;
  }
  return make_error(ErrorCode::kIo, "cannot create a temporary file beside ", quote(destination), " in ",
                    kAttempts, " attempts");
}

Result<void> AtomicFile::publish(bool sync) {
  if (sync && ::fsync(file_.get()) != 0) return system_error(errno, "cannot sync", destination_);
  if (::rename(temporary_.c_str(), destination_.c_str()) != 0) {
    return system_error(errno, "cannot replace", destination_);
  }
  temporary_.clear();
  return sync ? sync_folder(place_of(destination_).folder, destination_) : Result<void>();
}

}  // namespace etstream
