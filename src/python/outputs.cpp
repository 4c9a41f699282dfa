// SPDX-License-Identifier: BSD-3-Clause
#include "python/outputs.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/input_record.h"
#include "python/descriptors_posix.h"
#include "python/errors.h"
#include "python/sources.h"

namespace etstream::python {
namespace {

/// The bytes that are written between two calls of Python.
constexpr std::uint64_t kStep = std::uint64_t{1} << 20;

/// Hands bytes to the write() of an object. Meanwhile they lie in an object of Python's, which stays alive
/// for anyone who keeps a view of it.
class ObjectOutput {
 public:
  explicit ObjectOutput(nb::handle object)
      : write_(object.attr("write")),
        is_raw_(nb::isinstance(object, nb::module_::import_("io").attr("RawIOBase"))) {}

  void take(std::span<const std::byte> bytes) {
    const auto size = static_cast<Py_ssize_t>(bytes.size());
    if (!buffer_.is_valid() || Py_REFCNT(buffer_.ptr()) > 1 || PyByteArray_Size(buffer_.ptr()) < size) {
      buffer_ = nb::steal(PyByteArray_FromStringAndSize(nullptr, size));
      if (!buffer_.is_valid()) throw nb::python_error();
    }
    std::memcpy(PyByteArray_AsString(buffer_.ptr()), bytes.data(), bytes.size());
    for (Py_ssize_t done = 0; done < size;) done += write(done, size);
  }

 private:
  /// Returns how many of the bytes from `begin` to `end` are taken; a raw file may take fewer than it is
  /// given.
  Py_ssize_t write(Py_ssize_t begin, Py_ssize_t end) {
    const nb::object all = nb::steal(PyMemoryView_FromObject(buffer_.ptr()));
    if (!all.is_valid()) throw nb::python_error();
    const nb::object taken = write_(nb::object(all[nb::slice(begin, end)]).attr("toreadonly")());
    if (taken.is_none() && !is_raw_) return end - begin;
    if (taken.is_none()) {
      PyErr_SetString(PyExc_BlockingIOError, "write() took nothing: the file is not to block");
      throw nb::python_error();
    }
    const Py_ssize_t count = PyNumber_AsSsize_t(taken.ptr(), PyExc_OverflowError);
    if (count == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
    if (count <= 0 || count > end - begin) {
      raise(make_error(ErrorCode::kIo, "write() says that it took {} of {} bytes", count, end - begin));
    }
    return count;
  }

  nb::object write_;
  bool is_raw_;
  nb::object buffer_;
};

}  // namespace

Warn CollectedWarnings::take() {
  return [this](const Finding& warning) { messages_.push_back(full_message(warning, argument_words)); };
}

void CollectedWarnings::show() const {
  for (const std::string& message : messages_) {
    nb::module_::import_("etstream._warnings").attr("warn")(message);
  }
}

std::unique_ptr<Sink> open_output(nb::handle output, const FileSinkOptions& options) {
  if (const InputRecord* const inputs = InputRecord::current()) {
    const auto file = changed_in_place(output);
    if (file) value_or_raise(inputs->check_output_in_place(*file, text("a {}", class_name(output))));
    if (!file && is_path(output)) value_or_raise(inputs->check_output(path_of(output)));
  }
  if (PyLong_Check(output.ptr()) && !PyBool_Check(output.ptr())) {
    const long descriptor = PyLong_AsLong(output.ptr());
    if (descriptor == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
    if (!std::in_range<int>(descriptor))
      raise(make_error(ErrorCode::kInvalidArgument, "{} is no descriptor", descriptor));
    return open_descriptor(static_cast<int>(descriptor));
  }
  if (nb::hasattr(output, "write")) {
    const std::shared_ptr<ObjectOutput> object(new ObjectOutput(output), [](ObjectOutput* last) {
      const nb::gil_scoped_acquire acquired;
      delete last;
    });
    return open_callback_sink([object](std::span<const std::byte> bytes) {
      return with_gil([&]() -> Result<void> {
        object->take(bytes);
        return {};
      });
    });
  }
  if (!is_path(output)) {
    const bool is_bytes = nb::isinstance<nb::bytes>(output);
    throw nb::type_error(
        text("output: expected a path, a descriptor, or an object with write(), found {}{}",
             class_name(output),
             is_bytes ? ": os.fsdecode() makes a path of them, and bytes(plan) is the whole file in memory"
                      : "")
            .c_str());
  }
  return without_gil([&, path = path_of(output)]() -> Result<std::unique_ptr<Sink>> {
    if (is_fifo(path)) return open_fifo(path);
    return open_file_sink(path, options);
  });
}

std::optional<FileIdentity> changed_in_place(nb::handle output) {
  if (is_path(output)) return std::nullopt;
  if (!PyLong_Check(output.ptr())) return identity_of_object(output);
  const long descriptor = PyLong_AsLong(output.ptr());
  PyErr_Clear();  // what is no descriptor is refused where it is opened
  return std::in_range<int>(descriptor) ? identity_of_file(static_cast<int>(descriptor)) : std::nullopt;
}

void require_apart(const ByteSource& input, nb::handle output) {
  const auto file = changed_in_place(output);
  if (!file || !input.lies_in(*file)) return;
  raise(with_advice(
      make_error(ErrorCode::kInvalidArgument,
                 "the output is the input {}, which would be read while it is written", quote(input.name())),
      {"give the output another name"}));
}

std::optional<std::uint64_t> limit(const char* argument, nb::handle given) {
  const nb::object checked = nb::module_::import_("etstream._arguments").attr("size")(argument, given);
  if (checked.is_none()) return std::nullopt;
  return nb::cast<std::uint64_t>(checked);
}

nb::object progress_callback(nb::handle progress) {
  return nb::module_::import_("etstream._progress").attr("callback")(progress);
}

Progress progress_to(nb::handle callback) {
  return [=, next = std::uint64_t{0}](std::uint64_t done, std::uint64_t size) mutable {
    if (done < next && done != size) return true;
    next = done + kStep;
    if (callback.is_none()) return check_signals_at_times().has_value();
    const auto shown = with_gil([&]() -> Result<void> {
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      callback(done, size);
      return {};
    });
    return shown.has_value();
  };
}

}  // namespace etstream::python
