// SPDX-License-Identifier: BSD-3-Clause
#include "python/reports.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/text.h"
#include "base/try.h"
#include "etstream/verify.h"
#include "python/errors.h"
#include "python/sources.h"
#include "report/diff_report.h"
#include "report/graph_report.h"
#include "report/inspect_report.h"
#include "report/json_report.h"

namespace etstream::python {
namespace {

/// As json.loads() has it.
nb::object parsed(const std::string& json) { return nb::module_::import_("json").attr("loads")(json); }

Findings verify_files(nb::handle file, const nb::handle& weights) {
  const ByteSource source = source_of(file);
  std::vector<ByteSource> sources;
  for (const nb::handle one : nb::iter(weights)) sources.push_back(source_of(one));
  if (sources.empty()) return without_gil([&] { return verify(source); });
  return without_gil([&] { return verify(source, sources); });
}

std::string counts(const Findings& findings) {
  return text("{}, {}", counted(findings.errors.size(), "error"),
              counted(findings.warnings.size(), "warning"));
}

/// A line each.
std::string told(const Findings& findings) {
  std::string out = counts(findings);
  for (const Finding& error : findings.errors) out += text("\nerror: {}", error.message);
  for (const Finding& warning : findings.warnings) out += text("\nwarning: {}", warning.message);
  return out;
}

void raise_if_errors(const Findings& findings) {
  if (findings.ok()) return;
  const Finding& first = findings.errors.front();
  raise({ErrorCode::kCorrupt, told(findings), 0, first.file, first.offset});
}

nb::list list_of(const std::vector<Finding>& findings) {
  const nb::object finding = nb::module_::import_("etstream._reports").attr("Finding");
  nb::list out;
  for (const Finding& one : findings) {
    const nb::object file = one.file ? decoded(*one.file) : nb::none();
    out.append(finding(decoded(one.message), file, one.offset));
  }
  return out;
}

nb::object inspected(nb::handle file, bool duplicates) {
  const ByteSource source = source_of(file);
  const FileInspection found = without_gil([&] { return inspect(source, {.duplicates = duplicates}); });
  return object_of(inspection_to_json(source.name(), found, duplicates));
}

FilePlan inspect_page(nb::handle file) {
  const ByteSource source = source_of(file);
  return without_gil([&] { return plan_inspect_page(source, source.name()); });
}

ProgramGraph read_graph(nb::handle file, const std::string& method) {
  return without_gil([&, source = source_of(file)]() -> Result<ProgramGraph> {
    ETSTREAM_ASSIGN(const ProgramFile program, open_program(source));
    return ProgramGraph::read(program, method);
  });
}

nb::object differences(nb::handle a, nb::handle b, bool ignore_layout) {
  const ByteSource in_a = source_of(a);
  const ByteSource in_b = source_of(b);
  FileDiff found = without_gil([&] { return diff(in_a, in_b); });
  if (ignore_layout) etstream::ignore_layout(found);
  return object_of(differences_to_json(in_a.name(), in_b.name(), found));
}

}  // namespace

nb::object object_of(const nlohmann::ordered_json& report) { return parsed(json_text(report)); }

void bind_reports(nb::module_& module) {
  nb::class_<Findings>(
      module, "Findings",
      "What a check has to say of a file: sentences for a person. True where there is no error.")
      .def_prop_ro(
          "errors", [](const Findings& self) { return list_of(self.errors); },
          nb::sig("def errors(self) -> list[etstream._reports.Finding]"),
          "The file is damaged, or would harm or fail whoever runs it.")
      .def_prop_ro(
          "warnings", [](const Findings& self) { return list_of(self.warnings); },
          nb::sig("def warnings(self) -> list[etstream._reports.Finding]"),
          "It works, but not as one would think.")
      .def("raise_if_errors", &raise_if_errors,
           "Raises a CorruptError with all of them if there is an error. Its filename and offset are the "
           "first's.")
      .def("__bool__", &Findings::ok)
      .def("__str__", &told)
      .def("__repr__", [](const Findings& self) {
        const std::string first = self.errors.empty() ? "" : text(": {}", self.errors.front().message);
        return text("<etstream.Findings: {}{}>", counts(self), first);
      });
  module.def("verify", &verify_files, nb::arg("file"), nb::arg("weights"),
             nb::sig("def verify(file: etstream._types.SourceLike, weights: "
                     "collections.abc.Iterable[etstream._types.SourceLike]) -> Findings"));
  module.def(
      "inspect", &inspected, nb::arg("file"), nb::arg("duplicates"),
      nb::sig("def inspect(file: etstream._types.SourceLike, duplicates: bool) -> dict[str, typing.Any]"));
  module.def("inspect_page", &inspect_page, nb::arg("file"),
             nb::sig("def inspect_page(file: etstream._types.SourceLike) -> FilePlan"));
  module.def(
      "graph",
      [](nb::handle file, const std::string& method) {
        std::string json;
        write_graph_json(read_graph(file, method), [&](std::string_view piece) { json += piece; });
        return parsed(json);
      },
      nb::arg("file"), nb::arg("method"),
      nb::sig("def graph(file: etstream._types.SourceLike, method: str) -> dict[str, typing.Any]"));
  module.def(
      "graph_dot",
      [](nb::handle file, const std::string& method) { return graph_to_dot(read_graph(file, method)); },
      nb::arg("file"), nb::arg("method"),
      nb::sig("def graph_dot(file: etstream._types.SourceLike, method: str) -> str"));
  module.def("diff", &differences, nb::arg("a"), nb::arg("b"), nb::arg("ignore_layout"),
             nb::sig("def diff(a: etstream._types.SourceLike, b: etstream._types.SourceLike, ignore_layout: "
                     "bool) -> dict[str, typing.Any]"));
}

}  // namespace etstream::python
