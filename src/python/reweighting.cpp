// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/reweight.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/try.h"
#include "etstream/bundled_program_file.h"
#include "etstream/input_record.h"
#include "etstream/program_with_weights.h"
#include "etstream/weight_origins.h"
#include "present/reports.h"
#include "python/bindings.h"
#include "python/checkpoints.h"
#include "python/errors.h"
#include "python/outputs.h"
#include "python/sources.h"
#include "python/strings.h"

namespace etstream::python {
namespace {

Report report_of(const ByteSource& program, const CheckpointByName& by, const WeightOrigins& origins) {
  nb::dict out;
  out["file"] = program.name();
  out["by"] = by.files;
  out.update(nb::borrow<nb::dict>(in_python(origins_to_json(origins))));
  out["names"] = key_names_of(origins);
  return out;
}

Result<ProgramWithWeights> with_weights(Result<ProgramFile> program, const std::vector<ByteSource>& weights) {
  ETSTREAM_ASSIGN(ProgramFile file, std::move(program));
  ProgramWithWeights out{std::move(file), {}};
  for (const ByteSource& each : weights) {
    ETSTREAM_ASSIGN(TensorDataFile tensors, TensorDataFile::open(each));
    out.weights.push_back(std::move(tensors));
  }
  return out;
}

Report explain_program(const SourceLike& program, const SourcesLike& weights, const CheckpointByName& by) {
  const ByteSource file = source_of(program);
  const std::vector<ByteSource> files = sources_of(weights);
  const WeightOrigins origins = without_gil([&]() -> Result<WeightOrigins> {
    ETSTREAM_ASSIGN(const ProgramWithWeights opened, with_weights(open_program(file), files));
    return explain(opened.program, opened.files(), by);
  });
  return report_of(file, by, origins);
}

/// Plans the program and the files of weights. Returns them with the number of payloads that are made of
/// `now`, and the origins of all.
std::tuple<FilePlan, std::vector<FilePlan>, std::size_t, Report> plan_reweighting(
    const SourceLike& program, const SourcesLike& weights, const CheckpointByName& was,
    const CheckpointByName& now) {
  const ByteSource file = source_of(program);
  const std::vector<ByteSource> files = sources_of(weights);
  // Checkpoints may have been opened before the record began.
  if (InputRecord* const inputs = InputRecord::current()) {
    for (const CheckpointByName* checkpoint : {&was, &now}) {
      for (const std::string& path : checkpoint->files) inputs->add(path);
    }
  }
  CollectedWarnings warnings;
  ReweightingPlan planned = without_gil([&]() -> Result<ReweightingPlan> {
    ETSTREAM_ASSIGN(const ProgramWithWeights opened, with_weights(ProgramFile::open(file), files));
    return plan(Reweighting{&opened.program, opened.files(), &was, &now, warnings.take()});
  });
  warnings.show();
  return {std::move(planned.program), std::move(planned.weights), planned.replaced,
          report_of(file, was, planned.origins)};
}

}  // namespace

void bind_reweighting(nb::module_& module) {
  module.def("explain", &explain_program, nb::arg("program"), nb::arg("weights"), nb::arg("by"));
  module.def("plan_reweighting", &plan_reweighting, nb::arg("program"), nb::arg("weights"), nb::arg("was"),
             nb::arg("now"));
}

}  // namespace etstream::python
