// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/embedded_file.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/text.h"
#include "core/base/try.h"
#include "python/bindings.h"
#include "python/errors.h"

namespace etstream::python {
namespace {

ObjectTarget target_of(const std::string& name) {
  const auto found = std::ranges::find(kObjectTargets, name);
  if (found != kObjectTargets.end()) return static_cast<ObjectTarget>(found - kObjectTargets.begin());
  raise(make_error(ErrorCode::kInvalidArgument, "target: expected one of {}, found {}",
                   names_text(kObjectTargets), quote(name)));
}

std::vector<FilePlan> plan_embedded_file(const std::string& path, const std::vector<std::string>& outputs,
                                         const std::optional<std::string>& target,
                                         const std::optional<std::string>& symbol,
                                         const std::optional<std::string>& section,
                                         const std::optional<std::uint64_t>& alignment) {
  const auto object_target = target ? std::optional(target_of(*target)) : std::nullopt;
  return without_gil([&]() -> Result<std::vector<FilePlan>> {
    ETSTREAM_ASSIGN(EmbeddedFile file, open_embedded_file(path));
    file.target = object_target;
    if (symbol) file.symbol = *symbol;
    if (section) file.section = *section;
    if (alignment) file.alignment = *alignment;
    return plan_outputs(file, outputs);
  });
}

}  // namespace

void bind_embedded_files(nb::module_& module) {
  module.def("plan_embedded_file", &plan_embedded_file, nb::arg("path"), nb::arg("outputs"),
             nb::arg("target").none(), nb::arg("symbol").none(), nb::arg("section").none(),
             nb::arg("alignment").none());
}

}  // namespace etstream::python
