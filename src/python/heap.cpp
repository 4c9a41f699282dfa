// SPDX-License-Identifier: BSD-3-Clause
#include "python/heap.h"

#include <nanobind/stl/filesystem.h>

#include "heap/in_process_linux.h"
#include "python/errors.h"

namespace etstream::python {

void bind_heap(nb::module_& module) {
  module.def(
      "start_heap",
      [](const std::filesystem::path& folder, std::uint64_t limit) {
        const heap::Served served = without_gil([&] { return heap::start(folder.string(), limit); });
        return served == heap::Served::kHere;
      },
      nb::arg("folder"), nb::arg("limit"),
      "Has large blocks of this process lie in a file in a folder, up to `limit` bytes of them in memory (0: "
      "as "
      "the system likes). False if they do already, under `etstream run`.");
  module.def(
      "stop_heap", [] { heap::stop(); }, nb::call_guard<nb::gil_scoped_release>(),
      "Ends what start_heap() began, each time that it was True.");
}

}  // namespace etstream::python
