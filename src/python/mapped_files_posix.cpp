// SPDX-License-Identifier: BSD-3-Clause
#include <nanobind/stl/optional.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "core/base/text.h"
#include "core/io/descriptor_posix.h"
#include "files/runs/unnamed_file_posix.h"
#include "python/bindings.h"
#include "python/descriptors_posix.h"
#include "python/errors.h"
#include "python/strings.h"

namespace etstream::python {
namespace {

std::size_t page_size() {
  static const auto kSize = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return kSize;
}

struct Unmap {
  std::size_t size = 0;
  void operator()(std::byte* start) const { munmap(start, size); }
};
using AddressRange = std::unique_ptr<std::byte[], Unmap>;

/// Maps a range of a file. Writes to the pages are private.
class FileMapping {
 public:
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

/// Opens the regular file that a source is all of, or a copy in a file without a name.
class LoadableFile {
 public:
  explicit LoadableFile(const ByteSource& source)
      : file_(without_gil([&] { return as_file(source); })),
        source_(open_descriptor_source(file_.get(), 0, source.size(), source.name())) {}

  [[nodiscard]] std::string path() const { return text("/dev/fd/{}", file_.get()); }
  [[nodiscard]] const ByteSource& source() const { return source_; }

 private:
  const Descriptor file_;
  const ByteSource source_;
};

}  // namespace

void bind_mapped_files(nb::module_& module) {
  nb::class_<FileMapping>(
      module, "FileMapping",
      "A source's bytes in a regular file, mapped while this object is there. The file is "
      "not to change meanwhile, and does not where the pages are written to.")
      .def(nb::init<const ByteSource&, bool>(), nb::arg("source"), nb::arg("writable"),
           "Raises UnsupportedError where they lie in none, or are none; CorruptError where the file has "
           "changed.")
      .def_prop_ro("address", &FileMapping::address);
  nb::class_<LoadableFile>(
      module, "LoadableFile",
      "A source as a file that others open by its path while this object is there: the regular file that the "
      "source is all of, or a copy in a file without a name, in $TMPDIR or /var/tmp.")
      .def(nb::init<const ByteSource&>(), nb::arg("source"), "Raises IoError, and what reading raises.")
      .def_prop_ro("path", &LoadableFile::path)
      .def_prop_ro("source", &LoadableFile::source,
                   "The source in that file, under its own name. Nothing of it has to be decoded.");
  module.def(
      "offset_in", [](const ByteSource& part, const ByteSource& whole) { return part.offset_in(whole); },
      nb::arg("part"), nb::arg("whole"), "Where one source begins in another, if it is a range of it.");
}

}  // namespace etstream::python
