// SPDX-License-Identifier: BSD-3-Clause
#include <nanobind/stl/tuple.h>

#include <tuple>

#include "memory/heap/in_process_linux.h"
#include "python/bindings.h"
#include "python/errors.h"
#include "python/sources.h"

namespace etstream::python {

void bind_heap(nb::module_& module) {
  module.def(
      "start_heap",
      [](const PathLike& folder, std::uint64_t limit) {
        const bool is_served =
            without_gil([path = path_of(folder), limit] { return heap::start(path, limit); });
        if (is_served) heap::serve_python_arenas();
        return is_served;
      },
      nb::arg("folder"), nb::arg("limit"),
      "Has large blocks of this process lie in a file in a folder ('': $TMPDIR, or /var/tmp), up to `limit`\n"
      "bytes of them in memory (0: as the system likes). False if they do already, under `etstream run`.");
  module.def("heap_keeps_limit", &heap::keeps_limit,
             "Whether the limit of start_heap() is kept: /proc tells what this process has in memory.");
  module.def(
      "stop_heap", [] { heap::stop(); }, nb::call_guard<nb::gil_scoped_release>(),
      "Ends what start_heap() began, each time that it was True.");
  module.def(
      "heap_use",
      [] {
        const heap::ProcessUse& use = heap::done();
        return std::tuple(use.blocks.load(), use.live.load(), use.peak.load(), use.paged_out.load(),
                          use.refused.load());
      },
      "What the heap of this process has done in all uses: how many blocks it has handed out; the bytes in\n"
      "blocks now, and at most; the bytes that were let go of for the limit; how many blocks it had no room "
      "for.");
}

}  // namespace etstream::python
