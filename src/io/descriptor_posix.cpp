// SPDX-License-Identifier: BSD-3-Clause
#include "io/descriptor_posix.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/text.h"

namespace etstream {
namespace {

ErrorCode code_of(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return ErrorCode::kNotFound;
    case ENOMEM:
      return ErrorCode::kOutOfMemory;
    case EFBIG:
      return ErrorCode::kTooLarge;
    default:
      return ErrorCode::kIo;
  }
}

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

Error system_error(int error, std::string_view doing, std::string_view path) {
  return make_error(code_of(error), doing, " ", quote(path), ": ", std::generic_category().message(error));
}

Result<void> write_all(int fd, std::span<const std::byte> bytes, std::string_view path) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      // A pipe that its other end made non-blocking: wait until it takes bytes again.
      pollfd ready{.fd = fd, .events = POLLOUT, .revents = 0};
      if (::poll(&ready, 1, -1) < 0 && errno != EINTR) return system_error(errno, "cannot wait for", path);
    } else if (errno != EINTR) {
      return system_error(errno, "cannot write", path);
    }
  }
  return {};
}

}  // namespace etstream
