// SPDX-License-Identifier: BSD-3-Clause
#include "python/sources.h"

#include <nanobind/stl/optional.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/checked.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/byte_source.h"
#include "etstream/packed_file.h"
#include "python/bindings.h"
#include "python/errors.h"
#include "python/files_posix.h"

namespace etstream::python {
namespace {

/// Returns whether this thread has the GIL, for which the stable interface has no function. Waits for the GIL
/// if it does not.
bool holds_gil() {
  const PyGILState_STATE before = PyGILState_Ensure();
  PyGILState_Release(before);
  return before == PyGILState_LOCKED;
}

/// An object that is released with the GIL, by whichever thread is the last to use it.
class HeldObject {
 public:
  explicit HeldObject(nb::object object) : object_(std::move(object)) {}
  HeldObject(const HeldObject&) = delete;
  HeldObject& operator=(const HeldObject&) = delete;
  ~HeldObject() {
    if (!Py_IsInitialized()) {
      object_.release();
      return;
    }
    const nb::gil_scoped_acquire acquired;
    object_.reset();
  }
  [[nodiscard]] const nb::object& get() const { return object_; }

 private:
  nb::object object_;
};

/// The deepest nesting of lists of sources, by which a list that contains itself is recognised.
constexpr int kDeepestList = 64;

/// The memory of an object with the buffer protocol. The owner of a torch storage may free its memory all the
/// same. A function watches such memory, `check` of etstream._arrays.bytes_at(), which raises once it has
/// been freed.
class Buffer final : public ByteStorage {
 public:
  explicit Buffer(nb::handle object) : name_(text("a {}", class_name(object))) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) != 0) throw nb::python_error();
    if (PyMemoryView_Check(object.ptr()) == 0) return;
    nb::object check = nb::getattr(nb::object(object.attr("obj")), "etstream_check", nb::none());
    if (!check.is_none()) check_ = std::make_unique<const HeldObject>(std::move(check));
  }
  ~Buffer() override {
    if (!Py_IsInitialized()) return;
    const nb::gil_scoped_acquire acquired;
    PyBuffer_Release(&view_);
  }

  std::uint64_t size() const noexcept override { return static_cast<std::uint64_t>(view_.len); }
  std::string name() const override { return name_; }
  Result<void> read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    ETSTREAM_TRY(check());
    if (!out.empty()) std::memcpy(out.data(), static_cast<const std::byte*>(view_.buf) + offset, out.size());
    return {};
  }
  [[nodiscard]] nb::object view() const { return nb::steal(PyMemoryView_FromObject(view_.obj)); }

 private:
  /// Checks the memory if Python may have run.
  Result<void> check() const {
    if (!check_ || checked_.load(std::memory_order_acquire) == python_turn()) return {};
    ETSTREAM_TRY(with_gil([&]() -> Result<void> {
      check_->get()();
      return {};
    }));
    checked_.store(python_turn(), std::memory_order_release);
    return {};
  }

  Py_buffer view_{};
  std::unique_ptr<const HeldObject> check_;
  mutable std::atomic<std::uint64_t> checked_ = 0;  // at which turn
  std::string name_;
};

void require_binary(nb::handle file) {
  if (!nb::hasattr(file, "encoding")) return;
  throw nb::type_error("expected a binary file, found one of text: open it with 'rb'");
}

/// The content of an open binary file of Python's, from its start to its end.
class PythonFile final : public ByteStorage {
 public:
  explicit PythonFile(nb::object file) : file_(std::move(file)) {
    require_binary(file_.get());
    if (nb::hasattr(file_.get(), "seekable") && !nb::cast<bool>(file_.get().attr("seekable")())) {
      throw nb::type_error(
          "expected a seekable file, found one that can only be read forward: "
          "copy it to a file or to bytes first");
    }
    file_.get().attr("seek")(0, 2);  // which need not return the position
    const nb::object end = file_.get().attr("tell")();
    size_ = PyLong_AsUnsignedLongLong(end.ptr());
    if (PyErr_Occurred() != nullptr) throw nb::python_error();
    identity_ = identity_of_object(file_.get());
    name_ = name_of_file(file_.get());
  }

  std::uint64_t size() const noexcept override { return size_; }
  std::string name() const override { return name_; }
  bool lies_in(const FileIdentity& file) const override { return identity_ == file; }
  Result<void> read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    // Never wait for the lock with the GIL held: its holder may wait for the GIL.
    std::optional<nb::gil_scoped_release> released;
    if (holds_gil()) released.emplace();
    const std::scoped_lock lock(mutex_);
    return with_gil([&]() -> Result<void> {
      file_.get().attr("seek")(offset);
      ETSTREAM_ASSIGN(const std::size_t n, read_on(file_.get(), out));
      if (n == out.size()) return {};
      return error_in(ErrorCode::kCorrupt, name_, "expected {} bytes, found its end at {}", size_,
                      offset + n);
    });
  }

 private:
  const HeldObject file_;
  std::uint64_t size_ = 0;
  FileIdentity identity_;
  std::string name_;
  mutable std::mutex mutex_;
};

/// A file whose reads sometimes check for signals.
class Interruptible final : public ByteStorage {
 public:
  Interruptible(ByteSource source, std::shared_ptr<const void> owner)
      : owner_(std::move(owner)), source_(std::move(source)) {}

  std::uint64_t size() const noexcept override { return source_.size(); }
  std::string name() const override { return source_.name(); }
  Result<void> read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    ETSTREAM_TRY(check_signals_at_times());
    return source_.read_at(offset, out);
  }
  /// Opens the source's descriptor. The source is a whole file, so offsets are the same in both.
  Result<int> open_descriptor() const override {
    ETSTREAM_ASSIGN(const FileRange range, source_.open_range());
    return range.descriptor;
  }
  Result<void> check_unchanged() const override { return source_.check_unchanged(); }
  bool lies_in(const FileIdentity& file) const override { return source_.lies_in(file); }
  void drop_pages(std::uint64_t offset, std::uint64_t size) const noexcept override {
    source_.drop_pages(offset, size);
  }
  bool clone_range(std::uint64_t offset, std::uint64_t size, int descriptor,
                   std::uint64_t at) const noexcept override {
    const auto range = source_.slice(offset, size);
    return range && range->clone_range(descriptor, at);
  }

 private:
  const std::shared_ptr<const void> owner_;
  const ByteSource source_;
};

ByteSource file_range(const PathLike& path, std::uint64_t offset, std::optional<std::uint64_t> size,
                      nb::handle owner) {
  std::shared_ptr<const void> held;
  if (!owner.is_none()) held = std::make_shared<const HeldObject>(nb::borrow(owner));
  return without_gil([&, name = path_of(path)]() -> Result<ByteSource> {
    ETSTREAM_ASSIGN(const ByteSource file, open_interruptible_file(name, std::move(held)));
    return file.slice(offset, size.value_or(offset < file.size() ? file.size() - offset : 0));
  });
}

/// Returns a part of `source` by a slice of Python's, in steps of 1.
ByteSource slice(const ByteSource& source, const nb::slice& range) {
  const auto [start, stop, step, count] = range.compute(static_cast<std::size_t>(source.size()));
  if (step != 1) throw nb::value_error("expected a slice in steps of 1");
  return value_or_raise(source.slice(static_cast<std::uint64_t>(start), count));
}

/// Returns a view of the buffer that holds the bytes, and their offset in it; None if no buffer holds them.
Annotated<"tuple[memoryview, int] | None"> buffer_of(const ByteSource& source) {
  const SourcePlace place = source.place();
  const auto* const buffer = dynamic_cast<const Buffer*>(place.storage);
  if (buffer == nullptr) return nb::none();
  const nb::object view = buffer->view();
  if (!view.is_valid()) throw nb::python_error();
  return nb::make_tuple(view, place.begin);
}

/// Returns where a buffer's bytes are in memory.
std::uintptr_t address_of(nb::handle buffer) {
  Py_buffer view;
  if (PyObject_GetBuffer(buffer.ptr(), &view, PyBUF_SIMPLE) != 0) throw nb::python_error();
  const auto address = reinterpret_cast<std::uintptr_t>(view.buf);
  PyBuffer_Release(&view);
  return address;
}

/// Returns the bytes of the parts, of which paths may be some, unlike in a list.
ByteSource concatenation(const SourcesLike& parts) {
  std::vector<ByteSource> sources;
  for (const nb::handle part : several("parts", "sources", parts)) sources.push_back(data_of(part));
  return value_or_raise(original(value_or_raise(ByteSource::concatenation(std::move(sources)))));
}

/// Opens a file as it lies; see open_interruptible_file().
Result<ByteSource> open_raw_file(const std::string& path, std::shared_ptr<const void> owner) {
  ETSTREAM_ASSIGN(ByteSource source, ByteSource::raw_file(path));
  return ByteSource(std::make_shared<Interruptible>(std::move(source), std::move(owner)));
}

}  // namespace

nb::bytes new_bytes(std::uint64_t size) {
  if (size > PY_SSIZE_T_MAX) throw nb::value_error("more than fits in bytes");
  auto bytes = nb::steal<nb::bytes>(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(size)));
  if (!bytes.is_valid()) throw nb::python_error();
  return bytes;
}

nb::list several(const char* argument, const char* kind, nb::handle given) {
  return nb::cast<nb::list>(
      nb::module_::import_("etstream._arguments").attr("several")(argument, kind, given));
}

Result<ByteSource> open_interruptible_file(const std::string& path, std::shared_ptr<const void> owner) {
  return open_original(
      path, [owner = std::move(owner)](const std::string& each) { return open_raw_file(each, owner); });
}

Result<std::size_t> read_on(nb::handle file, std::span<std::byte> out) {
  require_binary(file);
  std::size_t done = 0;
  while (done < out.size()) {
    const nb::object read = file.attr("read")(out.size() - done);
    const Buffer piece(read);
    if (piece.size() == 0) break;
    if (piece.size() > out.size() - done) {
      return error_in(ErrorCode::kCorrupt, name_of_file(file), "expected at most {} bytes, found {}",
                      out.size() - done, piece.size());
    }
    ETSTREAM_TRY(piece.read_at(0, out.subspan(done, static_cast<std::size_t>(piece.size()))));
    done += static_cast<std::size_t>(piece.size());
  }
  return done;
}

std::string class_name(nb::handle object) {
  return nb::cast<std::string>(nb::object(object.type().attr("__name__")));
}

std::string name_of_file(nb::handle file) {
  const nb::object name = nb::getattr(file, "name", nb::none());
  return nb::isinstance<nb::str>(name) ? nb::cast<std::string>(name) : text("a {}", class_name(file));
}

bool is_path(nb::handle object) {
  return nb::isinstance<nb::str>(object) || nb::hasattr(object, "__fspath__");
}

nb::object asked(nb::handle object) {
  return nb::module_::import_("etstream._arguments").attr("asked")(object);
}

std::string path_of(nb::handle object) {
  if (!is_path(object)) throw nb::type_error(text("expected a path, found {}", class_name(object)).c_str());
  PyObject* bytes = nullptr;
  if (PyUnicode_FSConverter(object.ptr(), &bytes) == 0) throw nb::python_error();
  const auto owned = nb::steal<nb::bytes>(bytes);
  return {owned.c_str(), owned.size()};
}

std::vector<std::string> paths_of(const std::vector<nb::object>& objects) {
  std::vector<std::string> out;
  out.reserve(objects.size());
  for (const nb::object& object : objects) out.push_back(path_of(object));
  return out;
}

FileIdentity identity_of_object(nb::handle object) {
  const FileIdentity as_object{~std::uint64_t{0}, reinterpret_cast<std::uintptr_t>(object.ptr())};
  if (!nb::hasattr(object, "fileno")) return as_object;
  PyObject* const number = PyObject_CallMethod(object.ptr(), "fileno", nullptr);
  const long descriptor = number != nullptr && PyLong_Check(number) ? PyLong_AsLong(number) : -1;
  Py_XDECREF(number);
  PyErr_Clear();  // of an object that has no descriptor after all, as a BytesIO
  if (!std::in_range<int>(descriptor)) return as_object;
  return identity_of_file(static_cast<int>(descriptor)).value_or(as_object);
}

namespace {

std::vector<ByteSource> sources_in(nb::handle objects, int depth);

/// Returns the bytes of an object that is nested in `depth` lists.
ByteSource source_in(nb::handle object, int depth) {
  if (nb::isinstance<ByteSource>(object)) {
    auto source = nb::cast<ByteSource>(object);
    if (InputRecord* const inputs = InputRecord::current()) inputs->add(source);
    return source;
  }
  if (is_path(object)) return file_range(nb::borrow(object), 0, std::nullopt, nb::none());
  if (PyObject_CheckBuffer(object.ptr()) != 0) {
    // A NumPy array claims the protocol even if its type has no place in it.
    auto buffer = nb::module_::import_("etstream._arrays").attr("exported")(object);
    return ByteSource(std::make_shared<Buffer>(buffer));
  }
  if (nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object)) {
    return value_or_raise(ByteSource::concatenation(sources_in(object, depth)));
  }
  if (nb::hasattr(object, "read") && nb::hasattr(object, "seek") && nb::hasattr(object, "tell")) {
    return ByteSource(std::make_shared<PythonFile>(nb::borrow(object)));
  }
  const nb::object known = nb::module_::import_("etstream._arrays").attr("known")(object);
  if (!known.is_none()) return source_in(known, depth);
  PyErr_SetString(
      PyExc_TypeError,
      text("expected a path, a buffer, a tensor, or a readable and seekable binary file, found {}",
           class_name(object))
          .c_str());
  throw nb::python_error();
}

/// Returns the bytes of each object of a list that is nested in `depth` others.
std::vector<ByteSource> sources_in(nb::handle objects, int depth) {
  if (depth == kDeepestList) {
    raise(make_error(ErrorCode::kInvalidArgument, "sources in lists that are nested more than {} deep",
                     kDeepestList));
  }
  std::vector<ByteSource> sources;
  for (const nb::handle object : nb::iter(objects)) {
    if (is_path(object)) {
      throw nb::type_error(text("expected the parts of one file in a list, as buffers or Sources, found a "
                                "path, {}; etstream.Source.concatenation() joins files",
                                quote(path_of(object)))
                               .c_str());
    }
    sources.push_back(source_in(object, depth + 1));
  }
  return sources;
}

}  // namespace

ByteSource data_of(nb::handle object) { return source_in(object, 0); }

ByteSource source_of(nb::handle object) {
  ByteSource out = data_of(object);
  if (nb::isinstance<ByteSource>(object) || is_path(object)) return out;
  return value_or_raise(original(std::move(out)));
}

std::vector<ByteSource> sources_of(nb::handle objects) {
  std::vector<ByteSource> sources;
  for (const nb::handle object : nb::iter(objects)) sources.push_back(source_of(object));
  return sources;
}

ByteSource raw_source_of(nb::handle object) {
  if (!is_path(object)) return data_of(object);
  return without_gil([path = path_of(object)] { return open_raw_file(path, nullptr); });
}

namespace {

nb::bytes read_bytes(const ByteSource& source, std::uint64_t offset, std::optional<std::uint64_t> size) {
  const std::uint64_t count = size.value_or(offset < source.size() ? source.size() - offset : 0);
  const ByteSource range = value_or_raise(source.slice(offset, count));
  nb::bytes bytes = new_bytes(count);
  const std::span<char> out(PyBytes_AsString(bytes.ptr()), static_cast<std::size_t>(count));
  without_gil([&]() -> Result<void> {
    ETSTREAM_TRY(range.read_at(0, std::as_writable_bytes(out)));
    return range.check_unchanged();
  });
  return bytes;
}

}  // namespace

void bind_sources(nb::module_& module) {
  nb::class_<ByteSource>(
      module, "Source",
      "Where bytes lie, and how many they are. A value: cheap to copy, holds no bytes itself. "
      "Functions that take a source also take what Source(object) takes.")
      .def(
          "__init__", [](ByteSource* self, nb::handle object) { new (self) ByteSource(source_of(object)); },
          nb::arg("object").none(), nb::sig("def __init__(self, object: etstream._types.SourceLike) -> None"),
          "A path (its file's size, identity and time are taken now, and reading fails if they change); a "
          "buffer, C-contiguous, or a torch tensor or NumPy array of any dtype, in place; a readable and "
          "seekable binary file, from its start, whose position reading moves; or a list of such, but of no "
          "paths, one after another, nested at most 64 deep. What is in place is kept alive, and is to stay "
          "unchanged until all is written: of a torch storage or an array that has been resized since, "
          "reading is an InvalidArgumentError. Raises TypeError for something else.")
      .def_static(
          "file", &file_range, nb::arg("path"), nb::arg("offset") = 0, nb::arg("size") = nb::none(),
          nb::arg("owner") = nb::none(),
          "A range of a regular file, in bytes; without size, all from offset on. owner is kept alive: an "
          "object that removes the file at its end, for one. Raises NotFoundError, IoError, and "
          "InvalidArgumentError for a range that is not inside the file.")
      .def_static(
          "descriptor",
          [](int descriptor, std::uint64_t offset, std::uint64_t size) {
            return open_descriptor_source(descriptor, offset, size, text("descriptor {}", descriptor));
          },
          nb::arg("descriptor"), nb::arg("offset"), nb::arg("size"),
          "A range, in bytes, of the file that is open for reading at a descriptor, which is duplicated. "
          "It need have no name, and may grow; the range is not to change.")
      .def_static("concatenation", &concatenation, nb::arg("parts"),
                  "The parts, each a source, one after another. Paths may be among them.")
      .def("__len__", [](const ByteSource& self) { return static_cast<std::size_t>(self.size()); })
      .def("__getitem__", &slice, nb::arg("range"), "A part of it, in steps of 1; lazy.")
      .def_prop_ro("size", &ByteSource::size, "In bytes.")
      .def_prop_ro("name", &ByteSource::name, "What messages call it: a path for a file.")
      .def(
          "read", &read_bytes, nb::arg("offset") = 0, nb::arg("size") = nb::none(),
          "A copy of size bytes from offset on; without size, of all that follows. Raises CorruptError for a "
          "file that has changed.")
      .def(
          "__bytes__", [](const ByteSource& self) { return read_bytes(self, 0, std::nullopt); },
          "A copy of all of it.")
      .def("__repr__", [](const ByteSource& self) {
        return text("<etstream.Source of {}: {}>", counted(self.size(), "byte"), self.name());
      });
  module.def("address_of", &address_of);
  module.def("buffer_of", &buffer_of);
}

}  // namespace etstream::python
