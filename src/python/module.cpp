// SPDX-License-Identifier: BSD-3-Clause
//
// etstream._core: the library, as the package's Python code calls it.
#include <nanobind/nanobind.h>

#ifdef Py_GIL_DISABLED
#error \
    "etstream needs a Python with the GIL, which guards the objects that it refers to; this one is free-threaded"
#endif

#ifdef ETSTREAM_HAS_HEAP
#include <nanobind/stl/tuple.h>

#include "memory/heap/in_process_linux.h"
#endif

#include <cstdint>
#include <string>
#include <tuple>

#include "etstream/packed_file.h"
#include "etstream/profile.h"
#include "etstream/version.h"
#include "present/print.h"
#include "python/bindings.h"
#include "python/errors.h"
#include "python/sources.h"

#ifdef ETSTREAM_HAS_HEAP
namespace etstream::python {

/// Keeps large blocks of this process in a file in a folder ("": $TMPDIR, or /var/tmp), and up to `limit`
/// bytes of them in memory (0: as the system likes). Returns false if `etstream run` does so already.
static bool start_heap(const PathLike& folder, std::uint64_t limit) {
  const bool is_served = without_gil([path = path_of(folder), limit] { return heap::start(path, limit); });
  if (is_served) heap::serve_python_arenas();
  return is_served;
}

/// Returns what the heap of this process has done in all uses: how many blocks it has handed out; the bytes
/// in blocks now, and at most; the bytes that were let go of for the limit; how many blocks it had no room
/// for.
static auto heap_use() {
  const heap::ProcessUse& use = heap::done();
  return std::tuple(use.blocks.load(), use.live.load(), use.peak.load(), use.paged_out.load(),
                    use.refused.load());
}

static void bind_heap(nb::module_& module) {
  module.def("start_heap", &start_heap);
  module.def("heap_keeps_limit", &heap::keeps_limit);
  module.def("stop_heap", &heap::stop, nb::call_guard<nb::gil_scoped_release>());
  module.def("heap_use", &heap_use);
}

}  // namespace etstream::python
#endif

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
  bind_containers(module);
  bind_flatbuffer_texts(module);
  bind_reports(module);
  bind_mapped_files(module);
  // They tell whether files are written as this version of ExecuTorch, or of the Python package flatbuffers,
  // does.
  module.def("is_release",
             [](const std::string& version) { return etstream::executorch_release(version).has_value(); });
  module.def("is_flatbuffers",
             [](const std::string& version) { return etstream::vtable_sharing(version).has_value(); });
  module.def("parse_size", [](const std::string& words, std::uint64_t least, std::uint64_t most) {
    return value_or_raise(etstream::parse_size(words, {least, most}));
  });
  module.attr("least_heap_limit") = etstream::kLeastOutOfCoreLimit;
#ifdef ETSTREAM_HAS_HEAP
  bind_heap(module);
#endif
}
