// SPDX-License-Identifier: BSD-3-Clause
//
// etstream._core: the library, as the package's Python code calls it.
#include <nanobind/nanobind.h>

#ifdef Py_GIL_DISABLED
#error \
    "etstream needs a Python with the GIL, which guards the objects that it refers to; this one is free-threaded"
#endif

#include <cstdint>
#include <string>

#include "etstream/out_of_core.h"
#include "etstream/packed_file.h"
#include "etstream/version.h"
#include "present/size_text.h"
#include "python/bindings.h"
#include "python/errors.h"
#include "python/strings.h"

NB_MODULE(_core, module) {
  using namespace etstream::python;
  // At its end torch leaves cycles of objects that nothing collects, and with them the objects that they
  // refer to.
  nb::set_leak_warnings(false);
  module.doc() = "The library of etstream. Use the package's own functions.";
  module.attr("version") = ETSTREAM_VERSION;
  etstream::set_default_threads(0);
  bind_sources(module);
  bind_file_plans(module);
  bind_bundles(module);
  bind_programs(module);
  bind_checkpoints(module);
  bind_fat_containers(module);
  bind_native_packages(module);
  bind_flatbuffer_texts(module);
  bind_packed_files(module);
  bind_embedded_files(module);
  bind_reports(module);
  bind_reweighting(module);
  bind_mapped_files(module);
  module.def(
      "is_release",
      [](const std::string& version) { return etstream::executorch_release(version).has_value(); },
      nb::arg("version"), "Whether files are written as this version of ExecuTorch does.");
  module.def(
      "is_flatbuffers",
      [](const std::string& version) { return etstream::vtable_sharing(version).has_value(); },
      nb::arg("version"), "Whether this is a version of the Python package flatbuffers.");
  module.def(
      "parse_size",
      [](const std::string& words, std::uint64_t least, std::uint64_t most) {
        return value_or_raise(etstream::parse_size(words, {least, most}));
      },
      nb::arg("words"), nb::arg("least"), nb::arg("most"),
      "The bytes of a size such as '4G'. Raises InvalidArgumentError for what is none, or out of bounds.");
  module.attr("least_heap_limit") = etstream::kLeastOutOfCoreLimit;
#ifdef ETSTREAM_HAS_HEAP
  bind_heap(module);
#endif
}
