// SPDX-License-Identifier: BSD-3-Clause
#include "python/outputs.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/names.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/byte_source.h"
#include "etstream/sink.h"
#include "etstream/write_files.h"
#include "present/reports.h"
#include "python/bindings.h"
#include "python/errors.h"
#include "python/files_posix.h"
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

/// The plans, with outputs of which none is None without a dry run.
using PlansAndOutputs =
    std::vector<std::pair<const FilePlan*, Annotated<"etstream._types.OutputLike | None">>>;

/// A record of inputs while Python's `with` lasts: the files that this thread opens are noted, and none is an
/// output, neither by its path nor by a descriptor. A new file may take the place of the input `replaceable`:
/// the last of several outputs.
struct Inputs {
  bool is_any_replaceable = false;
  std::optional<FileIdentity> replaceable;
  std::optional<InputRecord> record;
  Inputs* outer = nullptr;

  static inline thread_local Inputs* newest = nullptr;
};

/// Returns the plans with their outputs as the library takes them. Outputs are opened with `warn`.
std::vector<OutputFile> files_of(const PlansAndOutputs& files, const FileSinkOptions& options) {
  std::vector<OutputFile> out;
  std::set<const PyObject*> objects;
  for (const auto& each : files) {
    const nb::object& output = each.second;
    const bool is_at_path = is_path(output);
    OutputFile& file = out.emplace_back(OutputFile{
        .plan = each.first, .path = is_at_path ? path_of(output) : text("a {}", class_name(output))});
    if (is_at_path && !is_fifo(file.path)) continue;
    file.open = [&output, options] {
      return with_gil([&]() -> Result<std::unique_ptr<Sink>> { return open_output(output, options); });
    };
    file.changes = changed_in_place(output);
    if (is_at_path || file.changes || objects.insert(output.ptr()).second) continue;
    raise(with_advice(make_error(ErrorCode::kInvalidArgument, "two outputs are to be {}", file.path),
                      {"give each its own"}));
  }
  return out;
}

/// Writes plans to their outputs, with the values of WriteOptions, in etstream/_writing.py. At paths they
/// appear in order once all are written, or none does. With `dry_run` all is checked, and nothing written;
/// otherwise none of the outputs is None.
void write_plans(PlansAndOutputs files, bool sync, const Any& progress, const LimitLike& max_disk,
                 const LimitLike& max_memory, bool dry_run) {
  for (auto& [plan, output] : files) output = asked(output);
  const nb::object callback = progress_callback(progress);
  std::vector<const FilePlan*> plans;
  for (const auto& [plan, output] : files) plans.push_back(plan);
  const std::uint64_t memory = memory_to_write(plans);
  if (const auto most = limit("max_memory", max_memory); most && memory > *most) {
    raise(make_error(ErrorCode::kTooLarge, "writing takes {} ({} bytes) of memory, over max_memory {}",
                     readable_size(memory), memory, readable_size(*most)));
  }
  if (dry_run) std::erase_if(files, [](const auto& file) { return file.second.is_none(); });
  CollectedWarnings warnings;
  const std::vector<OutputFile> outputs = files_of(files, warnings.options(sync));
  const WriteFilesOptions options{
      .sync = sync,
      .warn = warnings.take(),
      .max_disk = limit("max_disk", max_disk),
      .may_replace_input = Inputs::newest == nullptr || Inputs::newest->is_any_replaceable,
      .progress = [&](bool) { return progress_to(callback); }};
  without_gil([&] { return dry_run ? check_files(outputs, options) : write_files(outputs, options); });
  warnings.show();
}

void write_plan(const FilePlan& plan, const nb::object& output, bool sync, const Any& progress,
                const LimitLike& max_disk) {
  write_plans({{&plan, output}}, sync, progress, max_disk, nb::none(), false);
}

nb::bytes bytes_of(const FilePlan& plan) {
  nb::bytes bytes = new_bytes(plan.size);
  char* end = PyBytes_AsString(bytes.ptr());
  without_gil([&] {
    const auto sink = open_callback_sink([&end](std::span<const std::byte> piece) -> Result<void> {
      std::memcpy(end, piece.data(), piece.size());
      end += piece.size();
      return {};
    });
    return write(plan, *sink);
  });
  return bytes;
}

using Extents = Annotated<"etstream.results.Table[etstream.results.Extent]">;

/// Returns the fields of a plan as a result.
Any result_of(const FilePlan& plan) {
  const nb::object type = nb::module_::import_("etstream.results").attr("PlannedFile");
  return nb::object(type.attr("_of")(in_python(plan_to_json(plan, plan.memory()))));
}

}  // namespace

Warn CollectedWarnings::take() {
  return [this](const Finding& warning) { messages_.push_back(full_message(warning, argument_words)); };
}

void CollectedWarnings::show() const {
  for (const std::string& message : messages_) {
    nb::module_::import_("etstream._package").attr("warn")(message);
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
  return nb::module_::import_("etstream._writing").attr("callback")(progress);
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

void bind_file_plans(nb::module_& module) {
  nb::class_<FilePlan>(
      module, "FilePlan",
      "The plan of a file, byte for byte: its metadata, and where the payloads go and lie. Has read "
      "no payload. It may be written any number of times, by several threads at once.")
      .def_ro("size", &FilePlan::size, "Of the file, in bytes.")
      .def_ro("metadata_size", &FilePlan::metadata_size, "The bytes that the plan itself holds in memory.")
      .def_ro("payload_size", &FilePlan::payload_size,
              "The bytes that stay where they lie until they are written.")
      .def_prop_ro("memory", &FilePlan::memory, "About how many bytes of memory writing takes.")
      .def_prop_ro(
          "extents",
          [](const FilePlan& self) -> Extents { return nb::object(result_of(self).attr("extents")); },
          "In file order: each with its offset, size and alignment in bytes, the label of what it holds, and "
          "the source of its bytes.")
      .def(
          "to_dict",
          [](const FilePlan& self) -> Report { return nb::object(result_of(self).attr("to_dict")()); },
          "The plan as a dict of numbers and lists.")
      .def("_repr_html_",
           [](const FilePlan& self) { return nb::cast<std::string>(result_of(self).attr("_repr_html_")()); })
      .def("__len__", [](const FilePlan& self) { return static_cast<std::size_t>(self.size); })
      .def("__bytes__", &bytes_of, "The whole file, in memory.")
      .def(
          "source", [](const FilePlan& self) { return value_or_raise(source_of(self)); },
          "The file, to be read before it is written, or instead. Raises UnsupportedError for one that has "
          "hashes in it.")
      .def_static(
          "copy", [](const SourceLike& source) { return plan_copy(source_of(source), "copy"); },
          nb::arg("source"), "The plan of a file that holds what source holds.")
      .def("write", &write_plan, nb::arg("output").none(), nb::kw_only(), nb::arg("sync") = true,
           nb::arg("progress") = nb::none(), nb::arg("max_disk") = nb::none(),
           nb::sig("def write(self, output: etstream._types.OutputLike, *, sync: bool = True, progress: "
                   "collections.abc.Callable[[int, int], object] | bool | None = None, max_disk: int | str | "
                   "None = None) -> None"),
           "Writes it front to back to a path, replaced atomically once all is written (with sync also "
           "durably: fsync of file and folder); to an open descriptor, from its position on; or to an object "
           "with write(), which gets read-only memoryviews of at most 1 MiB, and is neither flushed nor "
           "closed. progress(done, total) is called with bytes at least every 16 MiB, in this thread, and "
           "may raise to stop; True shows a bar with tqdm. The GIL is released while bytes move. After an "
           "error, or Ctrl-C, a path is as it was. max_disk is how many bytes it may take, an int or a str "
           "such as '4G'; without it a file "
           "that has data for each of the names that share it elsewhere may take 4 times the size. Raises "
           "TooLargeError, with the size, for more, and InvalidArgumentError for a file that is written in "
           "place and that it has bytes from.")
      .def("__repr__", [](const FilePlan& self) {
        return text("<etstream.FilePlan of {} bytes, {} of them in memory>", self.size, self.metadata_size);
      });
  module.def("write_plans", &write_plans, nb::arg("files"), nb::kw_only(), nb::arg("sync"),
             nb::arg("progress").none(), nb::arg("max_disk") = nb::none(), nb::arg("max_memory") = nb::none(),
             nb::arg("dry_run") = false);
  module.def("make_folder", [](const PathLike& path, bool sync) {
    return value_or_raise(make_folder(path_of(path), {.sync = sync}));
  });
  module.def("path_in_folder", [](const PathLike& folder, const std::string& name) {
    return value_or_raise(path_in_folder(path_of(folder), name));
  });
  nb::class_<Inputs>(module, "Inputs")
      .def(
          "__init__",
          [](Inputs* self, nb::handle replaceable) {
            new (self) Inputs();
            self->is_any_replaceable = !replaceable.is_none();
            if (is_path(replaceable)) self->replaceable = identity_of(path_of(replaceable));
          },
          nb::arg("replaceable") = nb::none())
      .def("__enter__",
           [](Inputs& self) {
             self.record.emplace(self.replaceable);
             self.outer = std::exchange(Inputs::newest, &self);
           })
      .def(
          "__exit__",
          [](Inputs& self, const nb::args&) {
            Inputs::newest = self.outer;
            self.record.reset();
          },
          nb::sig("def __exit__(self, *exception: object) -> None"));
}

}  // namespace etstream::python
