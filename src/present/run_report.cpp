// SPDX-License-Identifier: BSD-3-Clause
#include <nlohmann/json.hpp>
#include <variant>

#include "present/reports.h"

namespace etstream {

static Json output_to_json(const OutputRun& output) {
  const auto* const found = std::get_if<Comparison>(&output);
  if (found == nullptr) return {{"ok", false}, {"problem", std::get<std::string>(output)}};
  return {{"ok", found->passed()},
          {"elements", found->elements},
          {"mismatches", found->mismatches},
          {"largest_absolute_error", found->largest_absolute_error},
          {"largest_relative_error", found->largest_relative_error},
          {"mean_absolute_error", found->mean_absolute_error}};
}

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
    for (const OutputRun& output : run.outputs) json["outputs"].push_back(output_to_json(output));
  }
  return out;
}

}  // namespace etstream
