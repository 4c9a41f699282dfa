// SPDX-License-Identifier: BSD-3-Clause
#include "python/files_posix.h"

#include <fcntl.h>
#include <nanobind/stl/optional.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "core/base/checked.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/descriptor_posix.h"
#include "etstream/byte_source.h"
#include "files/runs/unnamed_file_posix.h"
#include "python/bindings.h"
#include "python/errors.h"

namespace etstream::python {
namespace {

class DescriptorFile final : public ByteStorage {
 public:
  DescriptorFile(Descriptor descriptor, std::string name, std::uint64_t offset, std::uint64_t size)
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

std::size_t page_size() {
  static const auto kSize = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return kSize;
}

struct Unmap {
  std::size_t size = 0;
  void operator()(std::byte* start) const { munmap(start, size); }
};
using AddressRange = std::unique_ptr<std::byte[], Unmap>;

/// Maps a range of a file while it lives. Writes to the pages are private, and the file is not to change.
class FileMapping {
 public:
  /// Raises UnsupportedError where the bytes lie in no regular file, or are none; CorruptError where the file
  /// has changed.
  FileMapping(const ByteSource& source, bool is_writable)
      : FileMapping(value_or_raise(source.open_range()), is_writable, source.name()) {}

  [[nodiscard]] std::uintptr_t address() const {
    return reinterpret_cast<std::uintptr_t>(range_.get()) + lead_;
  }

 private:
  FileMapping(const FileRange& file, bool is_writable, const std::string& name)
      : lead_(file.offset % page_size()) {
    const Descriptor descriptor(file.descriptor);
    if (file.size == 0 || file.size > PTRDIFF_MAX - lead_) {
      raise(error_in(ErrorCode::kUnsupported, name, "{} bytes can't be mapped", file.size));
    }
    const std::size_t size = lead_ + static_cast<std::size_t>(file.size);
    // Only the few pages that are written to are copied, so no memory is reserved for all.
    void* const start =
        mmap(nullptr, size, is_writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_PRIVATE | MAP_NORESERVE,
             descriptor.get(), static_cast<off_t>(file.offset - lead_));
    if (start == MAP_FAILED) raise(system_error(errno, "mapping", name));
    range_ = AddressRange(static_cast<std::byte*>(start), {size});
  }

  std::size_t lead_;
  AddressRange range_;
};

/// A source as a file that others open by its path while this object is there: the regular file that the
/// source is all of, or a copy in a file without a name, in $TMPDIR or /var/tmp.
class LoadableFile {
 public:
  /// Raises IoError, and what reading raises.
  explicit LoadableFile(const ByteSource& source)
      : file_(without_gil([&] { return as_file(source); })),
        source_(open_descriptor_source(file_.get(), 0, source.size(), source.name())) {}

  [[nodiscard]] std::string path() const { return text("/dev/fd/{}", file_.get()); }
  /// Returns the source in that file, under its own name. Nothing of it has to be decoded.
  [[nodiscard]] const ByteSource& source() const { return source_; }

 private:
  const Descriptor file_;
  const ByteSource source_;
};

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
  return ByteSource(std::make_shared<DescriptorFile>(std::move(duplicate), std::move(name), offset, size));
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

void bind_mapped_files(nb::module_& module) {
  nb::class_<FileMapping>(module, "FileMapping")
      .def(nb::init<const ByteSource&, bool>())
      .def_prop_ro("address", &FileMapping::address);
  nb::class_<LoadableFile>(module, "LoadableFile")
      .def(nb::init<const ByteSource&>())
      .def_prop_ro("path", &LoadableFile::path)
      .def_prop_ro("source", &LoadableFile::source);
  module.def("offset_in", &ByteSource::offset_in);
}

}  // namespace etstream::python
