// SPDX-License-Identifier: BSD-3-Clause
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <vector>

#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/flatbuffer_text.h"
#include "python/bindings.h"
#include "python/errors.h"
#include "python/outputs.h"
#include "python/sources.h"

namespace etstream::python {
namespace {

/// Opens an object of a class that needs a schema and the folders of its included schemas.
template <class T>
T opened(const PathLike& schema, const PathsLike& include_folders) {
  std::vector<std::string> folders;
  for (const nb::handle folder : several("include_folders", "paths", include_folders)) {
    folders.push_back(path_of(folder));
  }
  return without_gil([&, path = path_of(schema)] { return T::open(path, folders); });
}

nb::bytes compiled(const FlatbufferText& schema, const SourceLike& json) {
  const auto made = without_gil([&, source = source_of(json)] { return schema.compile(source); });
  return nb::bytes(made.data(), made.size());
}

std::string decompiled(const FlatbufferText& schema, const SourceLike& flatbuffer, bool strict_json,
                       bool defaults, bool identifier, bool size_prefixed) {
  const DecompileOptions options{strict_json, defaults, identifier, size_prefixed};
  return without_gil([&, source = source_of(flatbuffer)] { return schema.decompile(source, options); });
}

FilePlan plan_exactly(const ExactJson& schema, const SourceLike& json, const PathLike& folder,
                      const std::string& order) {
  const auto to = choice<FlatbufferOrder>("order", order, {"flatc", FlatbufferOrder::kFlatc},
                                          {"python", FlatbufferOrder::kPython});
  return without_gil(
      [&, source = source_of(json), path = path_of(folder)] { return schema.compile(source, path, to); });
}

void decompile_exactly(const ExactJson& schema, const SourceLike& file, const OutputLike& output,
                       bool compact, bool defaults, bool identifier, bool size_prefixed,
                       std::optional<std::uint64_t> leave_out_over, std::string file_name, bool sync) {
  CollectedWarnings warnings;
  const ExactJsonOptions options{
      compact, defaults, identifier, size_prefixed, leave_out_over, std::move(file_name), warnings.take()};
  const ByteSource source = source_of(file);
  require_apart(source, output);
  const auto sink = open_output(output, warnings.options(sync));
  without_gil([&]() -> Result<void> {
    ETSTREAM_TRY(schema.decompile(source, options, *sink));
    return sink->commit();
  });
  warnings.show();
}

}  // namespace

void bind_flatbuffer_texts(nb::module_& module) {
  nb::class_<FlatbufferText>(
      module, "FlatbufferText",
      "A schema, for flatbuffers from JSON and JSON from flatbuffers as flatc makes them. It is loaded once "
      "and serves any number of calls, by several threads at once.")
      .def(
          "__init__", constructor(&opened<FlatbufferText>), nb::arg("schema"),
          nb::arg("include_folders") = nb::tuple(),
          "The path of a .fbs file, which may include others next to it or in include_folders, or of a .bfbs "
          "file. Raises CorruptError with file and line, UnsupportedError, TooLargeError over 16 MiB.")
      .def("compile", &compiled, nb::arg("json"),
           "The flatbuffer that JSON describes, a source (text is given as bytes), byte for byte that of "
           "flatc --binary. Takes some 100 bytes of memory a value. Raises CorruptError with the line; "
           "TooLargeError over 256 MiB, or for a flatbuffer of 2 GiB.")
      .def("decompile", &decompiled, nb::arg("flatbuffer"), nb::kw_only(), nb::arg("strict_json") = true,
           nb::arg("defaults") = true, nb::arg("identifier") = true, nb::arg("size_prefixed") = false,
           "The text that flatc --json gives for a flatbuffer, a source, which is checked against the schema "
           "first. It rounds numbers, as flatc's; bytes in it that are not UTF-8 come as os.fsdecode gives "
           "them. strict_json puts names in quotes; defaults adds scalars that are not in the file; "
           "identifier asks for the schema's; size_prefixed is for files that begin with their size, as "
           "ETDumps do. Raises CorruptError with the offset, UnsupportedError, TooLargeError over 2 GiB.")
      .def_prop_ro("file_extension", &FlatbufferText::file_extension,
                   "That the schema gives to its files, without a point; 'bin' where it gives none.")
      .def("__repr__",
           [](const FlatbufferText& self) { return text("<etstream.FlatbufferText of {}>", self.path()); });
  nb::class_<ExactJson>(module, "ExactJson")
      .def("__init__", constructor(&opened<ExactJson>), nb::arg("schema"), nb::arg("include_folders"))
      .def("plan", &plan_exactly, nb::arg("json"), nb::arg("folder"), nb::arg("order"))
      .def("decompile", &decompile_exactly, nb::arg("file"), nb::arg("output"), nb::kw_only(),
           nb::arg("compact"), nb::arg("defaults"), nb::arg("identifier"), nb::arg("size_prefixed"),
           nb::arg("leave_out_over"), nb::arg("file_name"), nb::arg("sync"));
}

}  // namespace etstream::python
