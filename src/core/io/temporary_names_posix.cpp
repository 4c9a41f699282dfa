// SPDX-License-Identifier: BSD-3-Clause
#include "core/io/temporary_names_posix.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <filesystem>
#include <memory>
#include <new>
#include <system_error>

#include "core/io/descriptor_posix.h"
#include "core/io/temporary_posix.h"

namespace etstream {
namespace {

constexpr std::string_view kMark = ".etstream-";
constexpr std::string_view kSuffix = ".tmp";
constexpr std::size_t kRandomDigits = 16;  // of 64 random bits
constexpr std::size_t kEndingSize = kMark.size() + kRandomDigits + kSuffix.size();

/// Returns the beginning of the names of all temporary files for a destination.
std::string temporary_prefix(std::string_view name) {
  std::string out = ".";
  return out.append(name.substr(0, kLongestName - 1 - kEndingSize)).append(kMark);
}

/// Tells a temporary name, of any destination, from others.
bool is_temporary(std::string_view name) {
  return name.size() > 1 + kEndingSize && name.starts_with('.') &&
         name.substr(name.size() - kEndingSize).starts_with(kMark) && name.ends_with(kSuffix);
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

}  // namespace

SplitPath split_path(const std::string& path) {
  const std::size_t name = path.rfind('/') + 1;  // 0 where there is no slash
  return {path.substr(0, name), path.substr(name)};
}

std::string temporary_name(std::string_view name, std::string_view digits) {
  return temporary_prefix(name).append(digits).append(kSuffix);
}

bool try_lock(int fd) {
  return retried([&] { return ::flock(fd, LOCK_EX | LOCK_NB); }) == 0;
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

}  // namespace etstream
