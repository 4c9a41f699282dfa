// SPDX-License-Identifier: BSD-3-Clause
#include <unistd.h>

#include <cerrno>

#include "heap/say.h"

namespace etstream::heap {

// strerror() would allocate where it has to translate.
const char* reason_of(int code) noexcept {
  switch (code) {
    case ENOSPC:
      return "No space left on device";
    case EDQUOT:
      return "Disk quota exceeded";
    case EFBIG:
      return "File too large";
    case EIO:
      return "Input/output error";
    case ENOMEM:
      return "Cannot allocate memory";
    case ENOENT:
      return "No such file or directory";
    case ENOTDIR:
      return "Not a directory";
    case EACCES:
      return "Permission denied";
    case EPERM:
      return "Operation not permitted";
    case EROFS:
      return "Read-only file system";
    case EMFILE:
      return "Too many open files";
    case ENFILE:
      return "Too many open files in system";
    case EOPNOTSUPP:
      return "Operation not supported";
    default:
      return "an error of the operating system";
  }
}

void write_line(std::string_view line) noexcept {
  Line whole;
  whole.add("etstream: heap: ");
  whole.add(line);
  whole.add("\n");
  const std::string_view text = whole.view();
  static_cast<void>(!::write(STDERR_FILENO, text.data(), text.size()));
}

}  // namespace etstream::heap
