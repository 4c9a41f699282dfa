// SPDX-License-Identifier: BSD-3-Clause
#include "python/mapped_files_posix.h"

#include <nanobind/stl/optional.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <ios>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "core/base/text.h"
#include "core/io/descriptor_posix.h"
#include "etstream/input_record.h"
#include "python/bindings.h"
#include "python/errors.h"
#include "python/sources.h"

namespace etstream::python {
namespace {

/// The header that CPython puts before the bytes of a bytes object: its size, and its hash. The stable
/// interface does not tell its size.
constexpr std::size_t kHeader = sizeof(PyVarObject) + sizeof(Py_hash_t);
#ifndef Py_LIMITED_API
static_assert(kHeader == offsetof(PyBytesObject, ob_sval));
#endif
/// The alignment that malloc, and so Python, gives to bytes.
constexpr std::size_t kAlignment = 16;
static_assert(kHeader % alignof(PyVarObject) == 0 && kHeader <= 4096);

// This layout of bytes is not promised: CPython has it from 3.10 to 3.14.
#if defined(PYPY_VERSION) || defined(Py_GIL_DISABLED) || defined(Py_TRACE_REFS)
constexpr bool kIsKnownPython = false;
#else
constexpr bool kIsKnownPython = true;
#endif

/// Returns the version of the running Python, which with the stable interface may be newer than the headers.
unsigned long python_version() {
#if PY_VERSION_HEX >= 0x030B0000
  return Py_Version;
#else
  return PY_VERSION_HEX;
#endif
}

/// Returns whether bytes of this Python have the layout that FileBytes uses.
bool is_known_layout() {
  if (!kIsKnownPython || python_version() >= 0x030F0000) return false;
  const auto bytes = nb::steal(PyBytes_FromStringAndSize("etstream", 8));
  if (!bytes.is_valid()) throw nb::python_error();
  std::byte expected[kHeader];
  std::memset(expected, 0xff, kHeader);
  PyObject_InitVar(reinterpret_cast<PyVarObject*>(expected), &PyBytes_Type, 8);
  return PyBytes_AsString(bytes.ptr()) == reinterpret_cast<char*>(bytes.ptr()) + kHeader &&
         std::memcmp(expected, bytes.ptr(), kHeader) == 0;
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

/// Maps a range of a file, and makes a bytes object of it. Its header is written before the bytes, into a
/// page of memory or, if the range begins in the middle of a page, a copy of that page. Memory: two pages.
class FileBytes {
 public:
  explicit FileBytes(const ByteSource& source)
      : FileBytes(value_or_raise(open_range_of(source)), source.name()) {}
  FileBytes(const FileBytes&) = delete;
  ~FileBytes() {
    // Python still refers to the bytes object, so its memory must stay mapped.
    if (Py_REFCNT(object()) > 1) static_cast<void>(range_.release());
  }

  [[nodiscard]] nb::bytes bytes() const { return nb::borrow<nb::bytes>(object()); }

 private:
  FileBytes(const FileRange& file, const std::string& name)
      : range_(map(file, name)), data_(range_.get() + page_size() + file.offset % page_size()) {
    std::byte* const header = data_ - kHeader;
    std::memset(header, 0xff, kHeader);  // a hash of -1 is one that is not known yet
    // It is never freed like other objects: this keeps a reference to it.
    PyObject_InitVar(reinterpret_cast<PyVarObject*>(header), &PyBytes_Type,
                     static_cast<Py_ssize_t>(file.size));
  }

  static Result<FileRange> open_range_of(const ByteSource& source) {
    static const bool kIsKnownLayout = is_known_layout();
    if (kIsKnownLayout) return source.open_range();
    return error_in(ErrorCode::kUnsupported, source.name(),
                    "can't be bytes where it lies, as this Python is none whose layout of bytes is known");
  }

  [[nodiscard]] PyObject* object() const { return reinterpret_cast<PyObject*>(data_ - kHeader); }

  /// Reserves a page of memory, the file's pages with the range, and a page behind it, as bytes have a zero
  /// behind their end.
  static AddressRange map(const FileRange& file, const std::string& name) {
    const Descriptor descriptor(file.descriptor);
    const std::size_t lead = file.offset % page_size();
    if (file.size == 0 || file.offset % kAlignment != 0 || file.size > PY_SSIZE_T_MAX - 3 * page_size()) {
      raise(error_in(ErrorCode::kUnsupported, name,
                     "{} bytes at {} can't be used where they lie, which is to be at a multiple of {}",
                     file.size, file.offset, kAlignment));
    }
    const std::size_t mapped = lead + static_cast<std::size_t>(file.size);
    const std::size_t size = page_size() + mapped + page_size();
    void* start =
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED) raise(system_error(errno, "mapping", name));
    AddressRange range(static_cast<std::byte*>(start), {size});
    std::byte* const pages = range.get() + page_size();
    if (mmap(pages, mapped, PROT_READ, MAP_PRIVATE | MAP_FIXED, descriptor.get(),
             static_cast<off_t>(file.offset - lead)) == MAP_FAILED ||
        (lead > 0 && mprotect(pages, page_size(), PROT_READ | PROT_WRITE) != 0)) {
      raise(system_error(errno, "mapping", name));
    }
    const std::size_t in_last_page = mapped % page_size();
    if (in_last_page != 0 && pages[mapped] != std::byte{0}) {  // The file goes on there.
      if (mprotect(pages + mapped - in_last_page, page_size(), PROT_READ | PROT_WRITE) != 0) {
        raise(system_error(errno, "mapping", name));
      }
      pages[mapped] = std::byte{0};
    }
    return range;
  }

  AddressRange range_;
  std::byte* data_;
};

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

using Time = std::chrono::steady_clock::time_point;

struct Mapping {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  FileIdentity file;
  std::string path;
};

/// Reads a line of /proc/self/maps: "BEGIN-END PERMISSIONS OFFSET MAJOR:MINOR INODE   PATH", in hexadecimal
/// except for the inode.
bool read_mapping(const std::string& line, Mapping& out) {
  std::istringstream words(line);
  std::string permissions;
  std::uint64_t offset = 0;
  unsigned major_number = 0;
  unsigned minor_number = 0;
  char dash = 0;
  char colon = 0;
  words >> std::hex >> out.begin >> dash >> out.end >> permissions >> offset >> major_number >> colon >>
      minor_number >> std::dec >> out.file.inode >> std::ws;
  out.file.device = makedev(major_number, minor_number);
  std::getline(words, out.path);
  return out.file.inode != 0;
}

struct Mappings {
  std::vector<Mapping> of_files;  // by address
  Time listed;                    // not before
};

Mappings list_mappings() {
  Mappings out;
  out.listed = std::chrono::steady_clock::now();
  std::ifstream lines("/proc/self/maps");
  for (std::string line; std::getline(lines, line);) {
    Mapping mapping;
    if (read_mapping(line, mapping)) out.of_files.push_back(std::move(mapping));
  }
  return out;
}

}  // namespace

bool is_mapping_of(std::span<const std::byte> memory, const FileIdentity& file, Time since) {
  static std::mutex mutex;
  static Mappings mappings;
  const std::lock_guard lock(mutex);
  if (mappings.listed <= since) mappings = list_mappings();
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.data());
  const auto first = std::partition_point(mappings.of_files.begin(), mappings.of_files.end(),
                                          [&](const Mapping& mapping) { return mapping.end <= begin; });
  for (auto mapping = first; mapping != mappings.of_files.end() && mapping->begin < begin + memory.size();
       ++mapping) {
    // Some file systems (btrfs, overlay) list another device, or file, than they report for the path.
    if (mapping->file == file || identity_of(mapping->path) == file) return true;
  }
  return false;
}

void bind_mapped_files(nb::module_& module) {
  nb::class_<FileBytes>(
      module, "FileBytes",
      "A range of a regular file as a bytes object that takes no memory: its pages are read "
      "as they are used, and may be taken back. The file is not to change meanwhile.")
      .def(
          "__init__", [](FileBytes* self, nb::handle source) { new (self) FileBytes(source_of(source)); },
          nb::arg("source"),
          "Raises UnsupportedError for a source that is not a range of a regular file, or one that does not "
          "begin at a multiple of 16 bytes, and under a Python that lays bytes out in another way than "
          "CPython 3.10 to 3.14.")
      .def_prop_ro("bytes", &FileBytes::bytes,
                   "The bytes. The address space is given back with this object, unless they are still "
                   "referred to then: it is never given back then.");
  nb::class_<FileMapping>(
      module, "FileMapping",
      "A source's bytes in a regular file, mapped while this object is there. The file is "
      "not to change meanwhile, and does not where the pages are written to.")
      .def(nb::init<const ByteSource&, bool>(), nb::arg("source"), nb::arg("writable"),
           "Raises UnsupportedError where they lie in none, or are none; CorruptError where the file has "
           "changed.")
      .def_prop_ro("address", &FileMapping::address);
  module.def(
      "offset_in", [](const ByteSource& part, const ByteSource& whole) { return part.offset_in(whole); },
      nb::arg("part"), nb::arg("whole"), "Where one source begins in another, if it is a range of it.");
}

}  // namespace etstream::python
