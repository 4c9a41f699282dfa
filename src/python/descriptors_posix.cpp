// SPDX-License-Identifier: BSD-3-Clause
#include "python/descriptors_posix.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <span>
#include <utility>

#include "core/base/checked.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/descriptor_posix.h"
#include "etstream/input_record.h"
#include "python/errors.h"

namespace etstream::python {
namespace {

class OpenFile final : public ByteStorage {
 public:
  OpenFile(Descriptor descriptor, std::string name, std::uint64_t offset, std::uint64_t size)
      : descriptor_(std::move(descriptor)), name_(std::move(name)), offset_(offset), size_(size) {}

  std::uint64_t size() const noexcept override { return size_; }
  std::string name() const override { return name_; }
  Result<void> read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    ETSTREAM_ASSIGN(const std::size_t n, read_all(descriptor_.get(), offset_ + offset, out, name_));
    if (n == out.size()) return {};
    return error_in(ErrorCode::kCorrupt, name_, "expected {} bytes, found {}", offset_ + size_,
                    offset_ + offset + n);
  }
  bool lies_in(const FileIdentity& file) const override {
    return identity_of_file(descriptor_.get()) == file;
  }
  void drop_pages(std::uint64_t offset, std::uint64_t size) const noexcept override {
    posix_fadvise(descriptor_.get(), static_cast<off_t>(offset_ + offset), static_cast<off_t>(size),
                  POSIX_FADV_DONTNEED);
  }

 private:
  const Descriptor descriptor_;
  const std::string name_;
  const std::uint64_t offset_;
  const std::uint64_t size_;
};

Result<void> write_stream(int descriptor, std::span<const std::byte> bytes, const std::string& name) {
  return write_all(descriptor, bytes, name, &check_signals);
}

}  // namespace

ByteSource open_descriptor_source(int descriptor, std::uint64_t offset, std::uint64_t size,
                                  std::string name) {
  Descriptor duplicate(fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
  struct stat found {};
  if (!duplicate || fstat(duplicate.get(), &found) != 0) raise(system_error(errno, "cannot open", name));
  if (!S_ISREG(found.st_mode) || !range_fits(offset, size, static_cast<std::uint64_t>(found.st_size))) {
    raise(error_in(ErrorCode::kInvalidArgument, name, "expected a file with {} bytes at {}, found {}", size,
                   offset, S_ISREG(found.st_mode) ? text("{} bytes", found.st_size) : "no regular file"));
  }
  return ByteSource(std::make_shared<OpenFile>(std::move(duplicate), std::move(name), offset, size));
}

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
  // The call waits for a reader.
  const auto open = [&] { return ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY); };
  int opened = open();
  for (; opened < 0 && errno == EINTR; opened = open()) ETSTREAM_TRY(check_signals());
  if (opened < 0) return system_error(errno, "cannot open", path);
  const auto fifo = std::make_shared<const Descriptor>(opened);
  return open_callback_sink(
      [fifo, path](std::span<const std::byte> bytes) { return write_stream(fifo->get(), bytes, path); });
}

}  // namespace etstream::python
