// SPDX-License-Identifier: BSD-3-Clause
#include "python/stream_sink_posix.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <span>
#include <utility>

#include "base/text.h"
#include "base/try.h"
#include "io/descriptor_posix.h"
#include "python/interrupts.h"

namespace etstream::python {
namespace {

/// What `call` returns, a system call that a signal interrupts, which Python may end with an exception.
template <class Call>
Result<ssize_t> until_done(Call&& call) {
  ssize_t result = call();
  while (result < 0 && errno == EINTR) {
    ETSTREAM_TRY(check_signals());
    result = call();
  }
  return result;
}

Result<void> write_stream(int descriptor, std::span<const std::byte> bytes, const std::string& name) {
  while (!bytes.empty()) {
    ETSTREAM_ASSIGN(const ssize_t n,
                    until_done([&] { return ::write(descriptor, bytes.data(), bytes.size()); }));
    if (n >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(n));
      // A signal may have cut it short.
      if (!bytes.empty()) ETSTREAM_TRY(check_signals());
    } else if (errno == EAGAIN) {
      pollfd ready{descriptor, POLLOUT, 0};
      ETSTREAM_TRY(until_done([&] { return ::poll(&ready, 1, -1); }));
    } else {
      return system_error(errno, "cannot write", name);
    }
  }
  return {};
}

}  // namespace

std::unique_ptr<Sink> open_descriptor(int descriptor) {
  std::string name = text("descriptor ", descriptor);
  struct stat found {};
  if (::fstat(descriptor, &found) == 0 && S_ISREG(found.st_mode)) {
    return open_descriptor_sink(descriptor, std::move(name));
  }
  return open_callback_sink([descriptor, name = std::move(name)](std::span<const std::byte> bytes) {
    return write_stream(descriptor, bytes, name);
  });
}

bool is_fifo(const std::string& path) {
  struct stat found {};
  return ::stat(path.c_str(), &found) == 0 && S_ISFIFO(found.st_mode);
}

Result<std::unique_ptr<Sink>> open_fifo(const std::string& path) {
  ETSTREAM_ASSIGN(const ssize_t opened,
                  until_done([&] { return ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY); }));
  if (opened < 0) return system_error(errno, "cannot open", path);
  const auto fifo = std::make_shared<const Descriptor>(static_cast<int>(opened));
  return open_callback_sink(
      [fifo, path](std::span<const std::byte> bytes) { return write_stream(fifo->get(), bytes, path); });
}

}  // namespace etstream::python
