// SPDX-License-Identifier: BSD-3-Clause
#include "core/io/temporary_posix.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <memory>
#include <new>
#include <string_view>
#include <system_error>

#include "core/base/names.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/descriptor_posix.h"
#include "core/io/file_calls_posix.h"
#include "etstream/byte_source.h"

namespace etstream {
namespace {

constexpr std::size_t kLongestFileName = 255;  // of a file in a folder, on every file system that matters

/// A path in two parts: the folder, which ends in '/' or is empty for the current one, and the name in it.
struct SplitPath {
  std::string folder;
  std::string name;
};

SplitPath split_path(const std::string& path) {
  const std::size_t name = path.rfind('/') + 1;  // 0 where there is no slash
  return {path.substr(0, name), path.substr(name)};
}

constexpr std::string_view kMark = ".etstream-";
constexpr std::string_view kSuffix = ".tmp";
constexpr std::size_t kRandomDigits = 16;  // of 64 random bits
constexpr std::size_t kEndingSize = kMark.size() + kRandomDigits + kSuffix.size();

/// Returns the beginning of the names of all temporary files for a destination.
std::string temporary_prefix(std::string_view name) {
  std::string out = ".";
  return out.append(name.substr(0, kLongestFileName - 1 - kEndingSize)).append(kMark);
}

/// Tells a temporary name, of any destination, from others.
bool is_temporary(std::string_view name) {
  return name.size() > 1 + kEndingSize && name.starts_with('.') &&
         name.substr(name.size() - kEndingSize).starts_with(kMark) && name.ends_with(kSuffix);
}

/// Takes the lock that says that a process is writing the file or folder. errno is EWOULDBLOCK if another has
/// it, and something else if the file system has no locks.
bool try_lock(int fd) {
  return retried([&] { return ::flock(fd, LOCK_EX | LOCK_NB); }) == 0;
}

/// Returns whether nobody has written to the file for so long that nobody will. It is a guess if there are no
/// locks. A writer that is wrongly taken for dead loses no more than its own file, and says so.
bool is_abandoned(int fd) {
  constexpr std::time_t kDay = 24 * 60 * 60;
  struct stat found {};
  return ::fstat(fd, &found) == 0 && std::time(nullptr) - found.st_mtime > kDay;
}

/// Opens and locks what a dead writer has left; returns nothing if a writer may still be at it.
Descriptor open_leftover(const std::string& path) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file || try_lock(file.get()) || (errno != EWOULDBLOCK && is_abandoned(file.get()))) return file;
  return Descriptor();
}

/// Calls `take` with each temporary name in the folder.
template <class Take>
void each_temporary(const std::string& folder, Take take) {
  const auto close = [](DIR* open) { ::closedir(open); };
  const std::unique_ptr<DIR, decltype(close)> entries(::opendir(folder.empty() ? "." : folder.c_str()));
  if (!entries) return;
  while (const dirent* entry = ::readdir(entries.get())) {
    if (is_temporary(entry->d_name)) take(std::string_view(entry->d_name));
  }
}

/// Returns the name of a temporary file for the destination `name`, beside it. `digits` are 16.
std::string temporary_name(std::string_view name, std::string_view digits) {
  return temporary_prefix(name).append(digits).append(kSuffix);
}

void remove_with_content(const std::string& path) noexcept {
  if (retried([&] { return ::unlink(path.c_str()); }) == 0) return;
  try {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  } catch (const std::bad_alloc&) {
    // If there is no memory to look into a folder, it stays for the next run to remove.
  }
}

Result<std::string> random_digits() {
  std::uint64_t number = 0;
  if (::getentropy(&number, sizeof(number)) != 0) {
    return make_error(ErrorCode::kIo, "cannot get random bytes for a temporary file's name");
  }
  return text("{:016x}", number);
}

/// Returns whether `path` still names the file behind `fd`.
bool names(const std::string& path, int fd) {
  struct stat by_path {};
  struct stat by_descriptor {};
  return ::lstat(path.c_str(), &by_path) == 0 && ::fstat(fd, &by_descriptor) == 0 &&
         file_identity(by_path) == file_identity(by_descriptor);
}

constexpr int kMostLinks = 40;  // Linux's own limit

/// Returns the path that the link at `path` points at; nothing if there is no link.
std::optional<std::string> follow_link(const std::string& path) {
  std::array<char, 4096> target{};
  const ssize_t n = ::readlink(path.c_str(), target.data(), target.size());
  if (n < 0) return std::nullopt;
  const std::string_view link(target.data(), static_cast<std::size_t>(n));
  return link.starts_with('/') ? std::string(link) : split_path(path).folder + std::string(link);
}

Descriptor open_folder(const std::string& path) {
  return Descriptor(retried([&] { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
}

Descriptor make_file(const std::string& path, mode_t mode) {
  return Descriptor(
      retried([&] { return ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode & 0666); }));
}

Descriptor make_folder(const std::string& path, mode_t mode) {
  if (retried([&] { return ::mkdir(path.c_str(), mode & 0777); }) != 0) return Descriptor();
  Descriptor made = open_folder(path);
  if (!made) {
    const int reason = errno;
    ::rmdir(path.c_str());
    errno = reason;
  }
  return made;
}

/// Gives the owner and the group of `before`, or at least the group, to a file with those of `now`. Returns
/// false for an error other than that this is not allowed.
bool give(int fd, const struct stat& now, const struct stat& before) {
  constexpr uid_t kUnchanged = static_cast<uid_t>(-1);
  if (now.st_uid == before.st_uid && now.st_gid == before.st_gid) return true;
  for (const uid_t owner : {before.st_uid, kUnchanged}) {
    if (retried([&] { return ::fchown(fd, owner, before.st_gid); }) == 0) return true;
    if (!mount_lacks(MountCall::kChangeOwner, errno)) return false;
  }
  return true;
}

/// Returns the permissions with which a file or a folder is made, before the umask. They give others than the
/// owner no more than the file that it replaces does. So it is never open to more people, even if permissions
/// can't be changed later.
mode_t mode_beside(const std::string& destination) {
  struct stat before {};
  return ::stat(destination.c_str(), &before) == 0 ? (before.st_mode & 0777) | 0700 : 0777;
}

/// The differences between making a file and making a folder.
struct OutputKind {
  Descriptor (*make)(const std::string& path, mode_t mode);
  Advice (*other_way)();  // of writing one where it can't be made beside its destination and renamed
};

Advice other_way_of_file() { return {AdviceTerm::kWriteToDescriptor, ", or elsewhere and copy it"}; }
Advice other_way_of_folder() { return {"write it elsewhere and copy it"}; }

constexpr OutputKind kOutputFile{make_file, other_way_of_file};
constexpr OutputKind kOutputFolder{make_folder, other_way_of_folder};

Error creating_error(int error, const std::string& destination, const OutputKind& kind) {
  if (error == ENOENT) {
    Error missing = refusal(ErrorCode::kNotFound, "cannot write", destination,
                            text("there is no folder {}", quote(split_path(destination).folder)));
    missing.system_code = ENOENT;
    return missing;
  }
  Error out = system_error(error, "cannot write beside", destination);
  if (mount_lacks(MountCall::kCreate, error)) out.advice = kind.other_way();
  return out;
}

Error replacing_error(int error, const std::string& destination, const OutputKind& kind) {
  Error out = system_error(error, "cannot replace", destination);
  if (mount_lacks(MountCall::kRename, error)) {
    out.message += ": complete files can't be put there at once";
    out.advice = kind.other_way();
  }
  return out;
}

Result<Temporary> create_beside(const std::string& destination, const OutputKind& kind) {
  const auto [folder, name] = split_path(destination);
  if (name.size() > kLongestFileName) return system_error(ENAMETOOLONG, "cannot write", destination);
  remove_leftovers(folder, name);
  const mode_t mode = mode_beside(destination);
  constexpr int kAttempts = 16;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    ETSTREAM_ASSIGN(const std::string digits, random_digits());
    std::string path = folder + temporary_name(name, digits);
    Descriptor made = kind.make(path, mode);
    if (!made) {
      if (errno == EEXIST) continue;
      return creating_error(errno, destination, kind);
    }
    const bool locked = try_lock(made.get());
    const bool taken = !locked && errno == EWOULDBLOCK;
    // Another process may have taken the new file for a leftover in the moment before it was locked.
    if (!taken && names(path, made.get())) return Temporary{std::move(path), std::move(made)};
    remove_with_content(path);
  }
  return with_advice(make_error(ErrorCode::kIo, "cannot create a temporary file beside {} in {} attempts",
                                quote(destination), kAttempts),
                     kind.other_way());
}

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

void remove_leftovers(const std::string& folder, std::string_view name) {
  const std::string prefix = temporary_prefix(name);
  each_temporary(folder, [&](std::string_view found) {
    if (!found.starts_with(prefix) || found.size() != prefix.size() + kRandomDigits + kSuffix.size()) return;
    const std::string path = folder + std::string(found);
    if (const Descriptor left = open_leftover(path)) remove_with_content(path);
  });
}

std::optional<std::string> leftover_beside(const std::string& path) {
  std::error_code ignored;
  const auto led_to = follow_links(path);
  const std::string folder = !led_to                                           ? ""
                             : std::filesystem::is_directory(*led_to, ignored) ? *led_to + '/'
                                                                               : split_path(*led_to).folder;
  std::optional<std::string> first;
  each_temporary(folder, [&](std::string_view found) {
    std::string left = folder + std::string(found);
    if ((!first || left < *first) && open_leftover(left)) first = std::move(left);
  });
  return first;
}

Result<std::string> follow_links(std::string path) {
  for (int links = 0; links < kMostLinks; ++links) {
    auto target = follow_link(path);
    if (!target) return path;
    path = *std::move(target);
  }
  return system_error(ELOOP, "cannot write", path);
}

std::optional<int> descriptor_named(std::string path) {
  for (int links = 0; links < kMostLinks; ++links) {
    for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
      if (!path.starts_with(folder)) continue;
      int descriptor = -1;
      const char* const end = path.data() + path.size();
      const auto [rest, error] = std::from_chars(path.data() + folder.size(), end, descriptor);
      if (error == std::errc() && rest == end && descriptor >= 0) return descriptor;
    }
    auto target = follow_link(path);
    if (!target) return std::nullopt;
    path = *std::move(target);
  }
  return std::nullopt;
}

Result<void> check_room_beside(const std::string& destination) {
  const auto [folder, name] = split_path(destination);
  if (name.size() > kLongestFileName) return system_error(ENAMETOOLONG, "cannot write", destination);
  const char* const path = folder.empty() ? "." : folder.c_str();
  if (::faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS) == 0) return {};
  return creating_error(errno, destination, kOutputFile);
}

Result<Temporary> create_temporary_file(const std::string& destination) {
  return create_beside(destination, kOutputFile);
}

Temporary::~Temporary() {
  if (!is_there_) return;
  // FUSE renames a file that is open instead of removing it, which a mount without rename refuses.
  close();
  remove_with_content(path_);
}

bool Temporary::rename_to(const std::string& destination) noexcept {
  if (retried([&] { return ::rename(path_.c_str(), destination.c_str()); }) != 0) return false;
  is_there_ = false;
  return true;
}

bool Temporary::rename_back_from(const std::string& destination) noexcept {
  if (retried([&] { return ::rename(destination.c_str(), path_.c_str()); }) != 0) return false;
  is_there_ = true;
  return true;
}

bool Temporary::exchange_with(const std::string& destination) noexcept {
  const auto exchange = [&] {
    return retried([&] { return exchange_names(path_.c_str(), destination.c_str()); }) == 0;
  };
  if (!exchange()) return false;
  struct stat found {};
  if (::lstat(path_.c_str(), &found) == 0 && S_ISREG(found.st_mode)) return true;
  // A folder has come there meanwhile, which must not be removed with this.
  if (!exchange()) is_there_ = false;
  errno = EISDIR;
  return false;
}

Result<void> keep_owner_and_permissions(int fd, const std::string& destination, const Warn& warn) {
  struct stat before {};
  struct stat now {};
  if (::stat(destination.c_str(), &before) != 0) return {};
  if (::fstat(fd, &now) != 0) return system_error(errno, "cannot examine what replaces", destination);
  if (!give(fd, now, before))
    return system_error(errno, "cannot set the owner of what replaces", destination);
  // Writing to a file takes away its set-user and set-group bits as well.
  const mode_t mode = before.st_mode & (S_ISDIR(before.st_mode) ? 07777 : 0777);
  if ((now.st_mode & 07777) == mode) return {};
  if (retried([&] { return ::fchmod(fd, mode); }) == 0) return {};
  const int reason = errno;
  Error error = system_error(reason, "cannot set the permissions of what replaces", destination);
  if (!mount_lacks(MountCall::kChangeMode, reason)) return error;
  constexpr mode_t kOfOthers = 077;
  const mode_t has = now.st_mode & 07777;
  const std::string figures = text("it has {:04o} instead of {:04o}", has, mode);
  if ((has & ~mode & kOfOthers) != 0) {
    error.message += text(": {}, which is more", figures);
    error.advice = S_ISDIR(before.st_mode) ? other_way_of_folder() : other_way_of_file();
    return error;
  }
  if (warn) warn(text("{}: {}", error.message, figures));
  return {};
}

void warn_of_no_sync(const std::string& destination, int error, const Warn& warn) {
  if (!warn) return;
  Error lost = system_error(error, "cannot sync", destination);
  lost.message += ": a power failure may undo what was written";
  warn(with_advice(std::move(lost), {AdviceTerm::kNoSync, " does not ask for it"}));
}

Error replacing_error(int error, const std::string& destination) {
  return replacing_error(error, destination, kOutputFile);
}

Result<bool> make_folder(const std::string& path, const FileSinkOptions& options) {
  return without_exceptions([&]() -> Result<bool> {
    const auto is_there = [&] {
      struct stat found {};
      return ::stat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode);
    };
    if (is_there()) return false;
    if (retried([&] { return ::mkdir(path.c_str(), 0777); }) != 0) {
      const int reason = errno;
      if (is_there()) return false;  // another process was faster
      return system_error(reason, "cannot make the folder", path);
    }
    if (!options.sync) return true;
    auto synced =
        sync_folder_of(path.substr(0, path.find_last_not_of('/') + 1), kCannotSyncFolder, options.warn);
    if (synced) return true;
    ::rmdir(path.c_str());
    return std::move(synced).error();
  });
}

Result<void> sync_folder_of(const std::string& destination, std::string_view doing, const Warn& warn) {
  const std::string folder = split_path(destination).folder;
  const std::string path = folder.empty() ? "." : folder;
  const Descriptor opened = open_folder(path);
  if (opened && retried([&] { return sync_file(opened.get()); }) == 0) return {};
  const int reason = errno;
  if (!mount_lacks(MountCall::kSyncFolder, reason)) return system_error(reason, doing, destination);
  warn_of_no_sync(folder.empty() ? "." : folder, reason, warn);
  return {};
}

Result<std::unique_ptr<AtomicFolder>> AtomicFolder::create(const std::string& destination,
                                                           const FileSinkOptions& options) {
  std::string name = destination.substr(0, destination.find_last_not_of('/') + 1);
  std::error_code error;
  const auto status = std::filesystem::status(name, error);
  if (name.empty()) return in_use(destination);
  if (std::filesystem::exists(status)) {
    if (!std::filesystem::is_directory(status)) return in_use(destination);
    ETSTREAM_ASSIGN(const bool empty, is_empty(name));
    if (!empty) return in_use(destination);
  }
  ETSTREAM_ASSIGN(Temporary temporary, create_beside(name, kOutputFolder));
  return std::unique_ptr<AtomicFolder>(new AtomicFolder(std::move(name), std::move(temporary), options));
}

Result<std::string> AtomicFolder::path_of(const std::string& name) const {
  return path_in_folder(temporary_.path(), name);
}

Error AtomicFolder::in_terms_of_destination(Error error) const {
  const auto rename_in = [this](std::string& words) {
    const auto place = words.find(temporary_.path());
    if (place != std::string::npos) words.replace(place, temporary_.path().size(), destination_);
  };
  rename_in(error.message);
  // The folder is written whole: no file of it can go to a descriptor.
  if (error.advice == other_way_of_file()) error.advice = other_way_of_folder();
  if (error.file) rename_in(*error.file);
  return error;
}

Result<void> AtomicFolder::prepare() {
  if (std::exchange(is_prepared_, true)) return {};
  ETSTREAM_TRY(keep_owner_and_permissions(temporary_.descriptor(), destination_, warn_));
  // One call syncs all the files in it, which may be thousands. Errors of single files were reported when
  // they were closed.
  if (sync_ && retried([&] { return sync_file_system(temporary_.descriptor()); }) != 0) {
    if (!mount_lacks(MountCall::kSync, errno)) return system_error(errno, "cannot sync", destination_);
    warn_of_no_sync(destination_, errno, warn_);
    sync_ = false;
  }
  return {};
}

Result<void> AtomicFolder::commit() {
  const bool is_one_of_several = is_prepared_;
  ETSTREAM_TRY(prepare());
  if (!is_one_of_several) ETSTREAM_TRY(InputRecord::check_unchanged());
  struct stat before {};
  if (::stat(destination_.c_str(), &before) == 0) replaced_mode_ = before.st_mode & 07777;
  if (!temporary_.rename_to(destination_)) {
    if (errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR) return in_use(destination_);
    return replacing_error(errno, destination_, kOutputFolder);
  }
  is_committed_ = true;
  if (is_one_of_several || !std::exchange(sync_, false)) return {};
  return sync_folder_of(destination_, kCompleteButNotSynced, warn_);
}

Result<void> AtomicFolder::make_durable() {
  return std::exchange(sync_, false) ? sync_folder_of(destination_, kCannotSyncFolder, warn_)
                                     : Result<void>();
}

Result<void> AtomicFolder::take_back() {
  if (!std::exchange(is_committed_, false)) return {};
  const auto make_again = [&] {
    return retried([&] { return ::mkdir(destination_.c_str(), 0777); }) == 0 &&
           retried([&] { return ::chmod(destination_.c_str(), static_cast<mode_t>(*replaced_mode_)); }) == 0;
  };
  if (temporary_.rename_back_from(destination_) && (!replaced_mode_ || make_again())) return {};
  return system_error(errno, "cannot put back what was at", destination_);
}

}  // namespace etstream
