// SPDX-License-Identifier: BSD-3-Clause
#include "core/io/descriptor_posix.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/packed_file.h"

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

Error refusal(ErrorCode code, std::string_view doing, std::string_view path, std::string_view why) {
  return {code, text("{} {}: {}", doing, quote(path), why), 0, std::string(path)};
}

Error system_error(int error, std::string_view doing, std::string_view path) {
  Error out = refusal(code_of(error), doing, path, std::generic_category().message(error));
  out.system_code = error;
  return out;
}

Result<void> write_all(int fd, std::span<const std::byte> bytes, std::string_view path,
                       const std::function<Result<void>()>& on_signal) {
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
    // It may have cut the call short, too.
    if (on_signal && !bytes.empty()) ETSTREAM_TRY(on_signal());
  }
  return {};
}

Result<std::size_t> read_all(int fd, std::uint64_t offset, std::span<std::byte> out, std::string_view path) {
  std::size_t done = 0;
  while (done < out.size()) {
    const std::span<std::byte> left = out.subspan(done);
    const ssize_t n =
        retried([&] { return ::pread(fd, left.data(), left.size(), static_cast<off_t>(offset + done)); });
    if (n < 0) {
      Error error = system_error(errno, "cannot read", path);
      error.offset = offset + done;
      error.message += text(" ({} bytes at offset {})", left.size(), *error.offset);
      return error;
    }
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  return done;
}

ReadBytes descriptor_reader(int descriptor, std::string name, std::function<Result<void>()> on_signal) {
  return [descriptor, name = std::move(name),
          on_signal = std::move(on_signal)](std::span<std::byte> out) -> Result<std::size_t> {
    std::size_t done = 0;
    while (done < out.size()) {
      const ssize_t n = ::read(descriptor, out.data() + done, out.size() - done);
      if (n == 0) break;
      if (n > 0) {
        done += static_cast<std::size_t>(n);
      } else if (errno != EINTR) {
        return system_error(errno, "cannot read", name);
      } else if (on_signal) {
        ETSTREAM_TRY(on_signal());
      }
    }
    return done;
  };
}

}  // namespace etstream
