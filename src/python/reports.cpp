// SPDX-License-Identifier: BSD-3-Clause
#include "python/reports.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "etstream/verify.h"
#include "python/errors.h"
#include "python/sources.h"

namespace etstream::python {
namespace {

Findings verify_files(nb::handle file, const nb::handle& weights) {
  const ByteSource source = source_of(file);
  std::vector<ByteSource> sources;
  for (const nb::handle one : nb::iter(weights)) sources.push_back(source_of(one));
  return without_gil([&] { return sources.empty() ? verify(source) : verify(source, sources); });
}

}  // namespace

void bind_reports(nb::module_& module) {
  nb::class_<Findings>(
      module, "Findings",
      "What a check has to say of a file: sentences for a person. True where there is no error.")
      .def_ro("errors", &Findings::errors, "The file is damaged, or would harm or fail whoever runs it.")
      .def_ro("warnings", &Findings::warnings, "It works, but not as one would think.")
      .def("__bool__", &Findings::ok);
  module.def("verify", &verify_files, nb::arg("file"), nb::arg("weights"));
}

}  // namespace etstream::python
