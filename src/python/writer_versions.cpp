// SPDX-License-Identifier: BSD-3-Clause
#include "python/writer_versions.h"

#include <nanobind/stl/string.h>

namespace etstream::python {

void bind_writer_versions(nb::module_& module) {
  module.def(
      "is_release", [](const std::string& version) { return executorch_release(version).has_value(); },
      nb::arg("version"), "Whether files are written as this version of ExecuTorch does.");
  module.def(
      "is_flatbuffers", [](const std::string& version) { return vtable_sharing(version).has_value(); },
      nb::arg("version"), "Whether this is a version of the Python package flatbuffers.");
}

}  // namespace etstream::python
