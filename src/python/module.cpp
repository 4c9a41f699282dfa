// SPDX-License-Identifier: BSD-3-Clause
//
// etstream._core: the library, as the package's Python code calls it.
#include <nanobind/nanobind.h>

#ifdef Py_GIL_DISABLED
#error \
    "etstream needs a Python with the GIL, which guards the objects that it refers to; this one is free-threaded"
#endif

#include "etstream/version.h"
#include "python/bundles.h"
#include "python/cases.h"
#include "python/checkpoints.h"
#include "python/fat_containers.h"
#include "python/file_bytes_posix.h"
#include "python/file_plans.h"
#include "python/flatbuffer_texts.h"
#include "python/heap.h"
#include "python/native_packages.h"
#include "python/program_files.h"
#include "python/programs.h"
#include "python/reports.h"
#include "python/shared_weights.h"
#include "python/sources.h"
#include "python/writer_versions.h"

NB_MODULE(_core, module) {
  using namespace etstream::python;
  // torch ends with cycles of objects that nothing collects any more, and with them what they refer to.
  nanobind::set_leak_warnings(false);
  module.doc() = "The library of etstream. Use the package's own functions.";
  module.attr("version") = ETSTREAM_VERSION;
  bind_sources(module);
  bind_file_plans(module);
  bind_bundles(module);
  bind_programs(module);
  bind_program_files(module);
  bind_checkpoints(module);
  bind_fat_containers(module);
  bind_shared_weights(module);
  bind_native_packages(module);
  bind_flatbuffer_texts(module);
  bind_reports(module);
  bind_test_cases(module);
  bind_file_bytes(module);
  bind_writer_versions(module);
#ifdef ETSTREAM_HAS_HEAP
  bind_heap(module);
#endif
}
