// SPDX-License-Identifier: BSD-3-Clause
#include "python/shared_weights.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/try.h"
#include "etstream/tensor_data_shards.h"
#include "jobs/weight_sharing.h"
#include "python/errors.h"
#include "python/reports.h"
#include "python/sources.h"
#include "report/sharing_report.h"

namespace etstream::python {
namespace {

/// The weights, if there are any, as one file or, with `most`, as shards.
Result<std::vector<FilePlan>> plan_weight_files(SharedWeightsPlan& planned,
                                                std::optional<std::uint64_t> most) {
  std::vector<FilePlan> out;
  if (!planned.weights) return out;
  if (!most) {
    out.push_back(*std::move(planned.weights));
    return out;
  }
  ETSTREAM_ASSIGN(const std::vector<TensorData> shards, split(planned.tensor_data, *most));
  for (const TensorData& shard : shards) {
    ETSTREAM_ASSIGN(out.emplace_back(), plan(shard));
  }
  return out;
}

/// The programs, the files of what they have in common, the container, and the report.
nb::tuple plan_shared(nb::handle programs, std::uint64_t least_size, bool into_container,
                      std::optional<std::uint64_t> split_max_size) {
  std::vector<SharingInput> inputs;
  std::vector<SharingProgram> before;
  for (const nb::handle item : nb::iter(programs)) {
    inputs.push_back({nb::cast<std::string>(item[0]), source_of(item[1])});
    before.push_back({inputs.back().name, inputs.back().program.size()});
  }
  const SharingOptions options{.least_size = least_size, .into_container = into_container};
  SharingPlan planned = without_gil([&] { return plan_sharing(inputs, options); });
  const nb::object report = object_of(sharing_to_json(before, planned.files));
  std::vector<FilePlan> weights =
      without_gil([&] { return plan_weight_files(planned.files, split_max_size); });
  return nb::make_tuple(std::move(planned.files.programs), std::move(weights), std::move(planned.container),
                        report);
}

}  // namespace

void bind_shared_weights(nb::module_& module) {
  module.def(
      "plan_shared_weights", &plan_shared, nb::arg("programs"), nb::arg("least_size"),
      nb::arg("into_container"), nb::arg("split_max_size").none(),
      nb::sig("def plan_shared_weights(programs: collections.abc.Sequence[tuple[str, object]], "
              "least_size: int, into_container: bool, split_max_size: int | None) -> "
              "tuple[list[FilePlan], list[FilePlan], FilePlan | None, dict[str, typing.Any]]"),
      "The plans of the programs, of the files of what they have in common and of a container; and the "
      "report.");
}

}  // namespace etstream::python
