// SPDX-License-Identifier: BSD-3-Clause
#include "python/layouts.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/try.h"
#include "etstream/layout.h"
#include "etstream/write.h"
#include "python/errors.h"
#include "python/outputs.h"
#include "python/sources.h"

namespace etstream::python {
namespace {

void write_layout(const Layout& layout, nb::handle output, bool sync, nb::handle progress) {
  const nb::object callback = progress_callback(progress);
  const auto sink = open_output(output, sync);
  without_gil([&] { return write(layout, *sink, progress_to(callback, 0, layout.size)); });
}

/// Layouts and their outputs. Those at paths are committed in order once all are written; what has gone to
/// others can't be taken back.
void write_layouts(const std::vector<std::pair<const Layout*, nb::object>>& files, bool sync,
                   nb::handle progress) {
  const nb::object callback = progress_callback(progress);
  std::uint64_t total = 0;
  for (const auto& [layout, output] : files) total += layout->size;
  std::uint64_t before = 0;
  std::vector<std::unique_ptr<Sink>> uncommitted;
  for (const auto& [layout, output] : files) {
    auto sink = open_output(output, sync);
    without_gil([&, layout = layout, write_it = is_path(output) ? &write_uncommitted : &write] {
      return write_it(*layout, *sink, progress_to(callback, before, total));
    });
    if (is_path(output)) uncommitted.push_back(std::move(sink));
    before += layout->size;
  }
  without_gil([&]() -> Result<void> {
    for (const auto& sink : uncommitted) ETSTREAM_TRY(sink->commit());
    return {};
  });
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
      "no payload. It may be written any number of times, by several threads at once.")
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
      .def("write", &write_layout, nb::arg("output").none(), nb::kw_only(), nb::arg("sync") = true,
           nb::arg("progress") = nb::none(),
           nb::sig("def write(self, output: object, *, sync: bool = True, progress: "
                   "collections.abc.Callable[[int, int], object] | bool | None = None) -> None"),
           "Writes it front to back to a path, replaced atomically once all is written (with sync also "
           "durably: fsync of file and folder); to an open descriptor, from its position on; or to an object "
           "with write(), which gets read-only memoryviews of at most 1 MiB, and is neither flushed nor "
           "closed. progress(done, total) is called with bytes at least every 16 MiB, in this thread, and "
           "may raise to stop; True shows a bar with tqdm. The GIL is released while bytes move. After an "
           "error, or Ctrl-C, a path is as it was.")
      .def("__repr__", [](const Layout& self) {
        return text("<etstream.Layout of ", self.size, " bytes, ", self.metadata_size, " of them in memory>");
      });
  module.def(
      "write_layouts", &write_layouts, nb::arg("files"), nb::kw_only(), nb::arg("sync"),
      nb::arg("progress").none(),
      nb::sig("def write_layouts(files: collections.abc.Sequence[tuple[Layout, object]], *, sync: bool, "
              "progress: object) -> None"),
      "Writes each layout to its output, as Layout.write() does; at paths they appear in order once all are "
      "written.");
}

}  // namespace etstream::python
