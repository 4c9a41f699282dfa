// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <nlohmann/json.hpp>
#include <variant>

#include "core/base/match.h"
#include "core/base/text.h"
#include "present/print.h"
#include "present/reports.h"

namespace etstream {
namespace {

/// JSON has no infinities and no NaN, which are words here.
Json double_to_json(double number) { return std::isfinite(number) ? Json(number) : Json(exact_text(number)); }

Json number_to_json(const Number& number) {
  return match(
      number, [](double value) { return double_to_json(value); },
      [](std::complex<double> value) {
        return Json::array({double_to_json(value.real()), double_to_json(value.imag())});
      },
      [](auto integer) { return Json(integer); });
}

Json mismatch_to_json(const Comparison& comparison, const Mismatch& mismatch) {
  return {{"index", mismatch.index},
          {"place", place_of(comparison, mismatch.index)},
          {"expected", number_to_json(mismatch.expected)},
          {"actual", number_to_json(mismatch.actual)}};
}

Json output_to_json(const OutputRun& output, std::size_t index) {
  Json out = {{"ok", output.ok()}, {"message", summary(output, index)}};
  if (!output.file.empty()) out["file"] = output.file;
  if (!output.problem.empty()) out["problem"] = output.problem;
  if (!output.comparison) return out;
  const Comparison& found = *output.comparison;
  if (found.layout) {
    out["dtype"] = name_of(found.layout->scalar_type);
    out["shape"] = found.layout->sizes;
  }
  out["elements"] = found.elements;
  out["equal"] = found.equal;
  out["mismatches"] = found.mismatches;
  out["not_finite"] = found.not_finite;
  out["largest_absolute_error"] = double_to_json(found.largest_absolute_error);
  out["largest_relative_error"] = double_to_json(found.largest_relative_error);
  out["mean_absolute_error"] = double_to_json(found.mean_absolute_error);
  if (found.largest_absolute_error > 0) {
    out["largest_absolute_place"] = place_of(found, found.largest_absolute_index);
  }
  if (found.largest_relative_error > 0) {
    out["largest_relative_place"] = place_of(found, found.largest_relative_index);
  }
  if (found.first) out["first"] = mismatch_to_json(found, *found.first);
  if (found.worst) out["worst"] = mismatch_to_json(found, *found.worst);
  return out;
}

}  // namespace

Json runs_to_json(const std::vector<MethodRun>& runs) {
  Json out = Json::array();
  for (const MethodRun& run : runs) {
    Json& json = out.emplace_back();
    json = {
        {"method", run.method}, {"inputs", run.inputs}, {"end", name_of(run.end)}, {"message", summary(run)}};
    if (!run.reason.empty()) json["reason"] = run.reason;
    if (run.error != 0) json["error"] = run.error;
    if (const auto name = executorch_error_name(run.error); !name.empty()) json["error_name"] = name;
    if (!run.signal.empty()) json["signal"] = run.signal;
    if (run.instruction) json["instruction"] = *run.instruction;
    if (!run.callee.empty()) json["callee"] = run.callee;
    for (std::size_t i = 0; i < run.outputs.size(); ++i) {
      json["outputs"].push_back(output_to_json(run.outputs[i], i));
    }
  }
  return out;
}

void print_runs(const std::string& file, const std::vector<MethodRun>& runs, TermWords words,
                std::string_view tolerance) {
  for (const MethodRun& run : runs) {
    const bool lists_others = run.end == MethodRun::End::kOtherOutputs && !run.outputs.empty();
    const std::string end =
        lists_others ? text("{}, {}: other outputs", printable(run.method), run.inputs) : summary(run);
    say("{}: {}\n", file, full_message(end, advice_of(run, tolerance), words));
    for (std::size_t i = 0; i < run.outputs.size(); ++i) say("  {}\n", one_line(summary(run.outputs[i], i)));
  }
}

}  // namespace etstream
