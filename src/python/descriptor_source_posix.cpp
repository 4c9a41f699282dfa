// SPDX-License-Identifier: BSD-3-Clause
#include "python/descriptor_source_posix.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>

#include "base/checked.h"
#include "base/text.h"
#include "base/try.h"
#include "etstream/input_record.h"
#include "io/descriptor_posix.h"
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
    return make_error(ErrorCode::kCorrupt, "{}: expected {} bytes, found {}", name_, offset_ + size_,
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

}  // namespace

ByteSource open_descriptor_source(int descriptor, std::uint64_t offset, std::uint64_t size) {
  std::string name = text("descriptor {}", descriptor);
  Descriptor duplicate(fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
  struct stat found {};
  if (!duplicate || fstat(duplicate.get(), &found) != 0) raise(system_error(errno, "cannot open", name));
  if (!S_ISREG(found.st_mode) || !range_fits(offset, size, static_cast<std::uint64_t>(found.st_size))) {
    raise(make_error(ErrorCode::kInvalidArgument, "{}: expected a file with {} bytes at {}, found {}", name,
                     size, offset,
                     S_ISREG(found.st_mode) ? text("{} bytes", found.st_size) : "no regular file"));
  }
  return ByteSource(std::make_shared<OpenFile>(std::move(duplicate), std::move(name), offset, size));
}

}  // namespace etstream::python
