// SPDX-License-Identifier: BSD-3-Clause
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "memory/heap/say.h"

namespace etstream::heap {

// strerror() may allocate, to translate the message.
const char* reason_of(int code) noexcept {
  static constexpr std::pair<int, const char*> kReasons[] = {
      {ENOSPC, "No space left on device"},
      {EDQUOT, "Disk quota exceeded"},
      {EFBIG, "File too large"},
      {EIO, "Input/output error"},
      {ENOMEM, "Cannot allocate memory"},
      {ENOENT, "No such file or directory"},
      {ENOTDIR, "Not a directory"},
      {EACCES, "Permission denied"},
      {EPERM, "Operation not permitted"},
      {EROFS, "Read-only file system"},
      {EMFILE, "Too many open files"},
      {ENFILE, "Too many open files in system"},
      {EOPNOTSUPP, "Operation not supported"},
  };
  for (const auto& [known, reason] : kReasons) {
    if (known == code) return reason;
  }
  return "an error of the operating system";
}

void write_error(std::string_view text) noexcept {
  static_cast<void>(!::write(STDERR_FILENO, text.data(), text.size()));
}

}  // namespace etstream::heap
