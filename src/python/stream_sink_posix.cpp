// SPDX-License-Identifier: BSD-3-Clause
#include "python/stream_sink_posix.h"

#include <fcntl.h>
#include <sys/stat.h>

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

Result<void> write_stream(int descriptor, std::span<const std::byte> bytes, const std::string& name) {
  return write_all(descriptor, bytes, name, &check_signals);
}

}  // namespace

std::unique_ptr<Sink> open_descriptor(int descriptor) {
  std::string name = text("descriptor {}", descriptor);
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
  // It waits for the reader.
  const auto open = [&] { return ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY); };
  int opened = open();
  for (; opened < 0 && errno == EINTR; opened = open()) ETSTREAM_TRY(check_signals());
  if (opened < 0) return system_error(errno, "cannot open", path);
  const auto fifo = std::make_shared<const Descriptor>(opened);
  return open_callback_sink(
      [fifo, path](std::span<const std::byte> bytes) { return write_stream(fifo->get(), bytes, path); });
}

}  // namespace etstream::python
