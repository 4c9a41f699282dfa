// SPDX-License-Identifier: BSD-3-Clause
#include "python/layouts.h"

#include <nanobind/stl/string.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/text.h"
#include "etstream/layout.h"
#include "etstream/write.h"
#include "python/errors.h"
#include "python/sources.h"

namespace etstream::python {
namespace {

/// Has `file.write` take all of `bytes`; a raw file may take less than it is given.
Result<void> write_to_object(nb::handle file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    // write() can't but read the bytes, whatever the pointer's type says.
    char* data = const_cast<char*>(reinterpret_cast<const char*>(bytes.data()));  // NOLINT
    const nb::object view =
        nb::steal(PyMemoryView_FromMemory(data, static_cast<Py_ssize_t>(bytes.size()), PyBUF_READ));
    if (!view.is_valid()) throw nb::python_error();
    const nb::object taken = file.attr("write")(view);
    // Who keeps a view of these bytes would see others in their place: this raises then.
    view.attr("release")();
    const std::size_t count = taken.is_none() ? bytes.size() : nb::cast<std::size_t>(taken);
    if (count == 0 || count > bytes.size()) {
      return make_error(ErrorCode::kIo, "write() says that it took ", count, " of ", bytes.size(), " bytes");
    }
    bytes = bytes.subspan(count);
  }
  return {};
}

/// A path; a descriptor; or an object with write(), which outlives the sink.
std::unique_ptr<Sink> open_sink(nb::handle output, bool sync) {
  if (nb::isinstance<nb::int_>(output)) {
    const int descriptor = nb::cast<int>(output);
    return open_descriptor_sink(descriptor, text("descriptor ", descriptor));
  }
  if (nb::hasattr(output, "write")) {
    return open_callback_sink([output](std::span<const std::byte> bytes) {
      return with_gil([&] { return write_to_object(output, bytes); });
    });
  }
  return without_gil([path = path_of(output), sync] { return open_file_sink(path, {.sync = sync}); });
}

/// How many bytes are written between two calls of Python's.
constexpr std::uint64_t kStep = std::uint64_t{1} << 20;

/// Looks for Ctrl-C at each step, and hands on how far writing is. `callback` outlives it, or is none.
Progress progress_to(nb::handle callback) {
  return [callback, next = std::uint64_t{0}](std::uint64_t done, std::uint64_t total) mutable {
    if (done < next && done != total) return true;
    next = done + kStep;
    const auto shown = with_gil([&]() -> Result<void> {
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      if (!callback.is_none()) callback(done, total);
      return {};
    });
    return shown.has_value();
  };
}

void write_layout(const Layout& layout, nb::handle output, bool sync, nb::handle progress) {
  const nb::object callback = nb::module_::import_("etstream._progress").attr("callback")(progress);
  const auto sink = open_sink(output, sync);
  without_gil([&] { return write(layout, *sink, progress_to(callback)); });
}

nb::bytes bytes_of(const Layout& layout) {
  return read_bytes(value_or_raise(source_of(layout)), 0, std::nullopt);
}

nb::list extents_of(const Layout& layout) {
  nb::list out;
  for (const Extent& extent : layout.extents) {
    out.append(nb::make_tuple(extent.offset, extent.size(), extent.alignment, layout.label(extent)));
  }
  return out;
}

}  // namespace

void bind_layouts(nb::module_& module) {
  nb::class_<Layout>(
      module, "Layout",
      "The plan of a file, byte for byte: its metadata, and where the payloads go and lie. Has read "
      "no payload. It may be written any number of times, by one thread at a time.")
      .def_ro("size", &Layout::size, "Of the file, in bytes.")
      .def_ro("metadata_size", &Layout::metadata_size, "The bytes that the layout itself holds in memory.")
      .def_ro("payload_size", &Layout::payload_size,
              "The bytes that stay where they lie until they are written.")
      .def_prop_ro("memory", &Layout::memory, "About how many bytes of memory writing takes.")
      .def_prop_ro("extents", &extents_of, nb::sig("def extents(self) -> list[tuple[int, int, int, str]]"),
                   "In file order: offset, size and alignment in bytes, and what it holds.")
      .def("__len__", [](const Layout& self) { return static_cast<std::size_t>(self.size); })
      .def("__bytes__", &bytes_of, "The whole file, in memory.")
      .def(
          "source", [](const Layout& self) { return value_or_raise(source_of(self)); },
          "The file, to be read before it is written, or instead. Raises UnsupportedError for one that has "
          "hashes in it.")
      .def_static(
          "copy", [](nb::handle source) { return plan_copy(source_of(source), "copy"); }, nb::arg("source"),
          nb::sig("def copy(source: object) -> Layout"), "The plan of a file that holds what source holds.")
      .def("write", &write_layout, nb::arg("output"), nb::kw_only(), nb::arg("sync") = true,
           nb::arg("progress") = nb::none(),
           nb::sig("def write(self, output: object, *, sync: bool = True, progress: object = None) -> None"),
           "Writes it front to back to a path, replaced atomically once all is written (with sync also "
           "durably: fsync of file and folder); to an open descriptor, from its position on; or to an object "
           "with "
           "write(), which gets read-only memoryviews of at most 1 MiB that are gone after the call, and is "
           "neither flushed nor closed. progress(done, total) is called with bytes at least every 16 MiB, "
           "in this thread, and may raise to stop; True shows a bar with tqdm. The GIL is released while "
           "bytes move. "
           "After an error, or Ctrl-C, a path is as it was.")
      .def("__repr__", [](const Layout& self) {
        return text("<etstream.Layout of ", self.size, " bytes, ", self.metadata_size, " of them in memory>");
      });
}

}  // namespace etstream::python
