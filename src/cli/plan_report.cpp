// SPDX-License-Identifier: BSD-3-Clause
#include "cli/plan_report.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/output.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/packed_file.h"
#include "present/print.h"
#include "present/reports.h"

namespace etstream::cli {
namespace {

constexpr std::size_t kMostExtents = 40;

/// Returns the extents that a table shows: the largest, in file order.
std::vector<const Extent*> rows_of(const FilePlan& plan) {
  std::vector<const Extent*> rows;
  for (const Extent& extent : plan.extents) rows.push_back(&extent);
  if (rows.size() <= kMostExtents) return rows;
  std::ranges::nth_element(rows, rows.begin() + kMostExtents, std::greater{}, &Extent::size);
  rows.resize(kMostExtents);
  std::ranges::sort(rows, {}, &Extent::offset);
  return rows;
}

nlohmann::ordered_json plan_to_json(const Output& output) {
  const FilePlan& plan = *output.plan;
  nlohmann::ordered_json out = {{"size", plan.size},
                                {"metadata_size", plan.metadata_size},
                                {"payload_size", plan.payload_size},
                                {"memory", planned_memory({output})},
                                {"extents", nlohmann::ordered_json::array()}};
  for (const Extent& extent : plan.extents) {
    out["extents"].push_back({{"offset", extent.offset},
                              {"size", extent.size()},
                              {"alignment", extent.alignment},
                              {"label", plan.label(extent)},
                              {"source", extent.source.name()}});
  }
  return out;
}

void print_table(const Output& output) {
  const FilePlan& plan = *output.plan;
  const auto rows = rows_of(plan);
  say("{:>14} {:>14} {:>6}  {:24} {}\n", "offset", "size", "align", "what", "from");
  for (const Extent* extent : rows) {
    std::string label = plan.label(*extent);
    label.resize(std::max(label.size(), std::size_t{24}), ' ');
    say("{:14} {:14} {:6}  {} {}\n", extent->offset, extent->size(), extent->alignment, label,
        extent->source.name());
  }
  if (rows.size() < plan.extents.size()) {
    say("... and {}, none larger; --json lists all\n",
        counted(plan.extents.size() - rows.size(), "smaller extent"));
  }
  const bool is_packed = output.path.ends_with(kPackedSuffix);
  say("{} ({} bytes) in all, {} of it metadata{}; writing takes about {} of memory\n",
      readable_size(plan.size), plan.size, readable_size(plan.metadata_size),
      is_packed ? "; it is packed, to 0.1 % more than that at most" : "",
      readable_size(planned_memory({output})));
}

void print_plan_json(const Output& output, const std::vector<Output>& tensor_data, const Output* params) {
  nlohmann::ordered_json report = plan_to_json(output);
  for (const Output& one : tensor_data) {
    if (tensor_data.size() == 1) {
      report["tensor_data"] = plan_to_json(one);
    } else {
      report["tensor_data"].push_back(plan_to_json(one));
    }
  }
  if (params != nullptr) report["params"] = params->path;
  print_json(report);
}

}  // namespace

void say_params(const Output& params) { say("{}: the shape of the model, from config.json\n", params.path); }

Result<void> show_plan(const FilePlan& plan, const OutputOptions& options,
                       const std::vector<Output>& tensor_data, const Output* params) {
  const Output output = {&plan, options.output};
  if (options.json) {
    print_plan_json(output, tensor_data, params);
  } else {
    print_table(output);
    for (const Output& one : tensor_data) {
      say("\nthe tensor data:\n");
      print_table(one);
    }
    if (params != nullptr) say_params(*params);
  }
  std::vector<Output> outputs = tensor_data;
  if (params != nullptr && !options.output.empty()) outputs.push_back(*params);
  outputs.push_back(output);
  return check_outputs(outputs, options);
}

Result<void> show_or_write(const FilePlan& plan, const OutputOptions& options,
                           const nlohmann::ordered_json& report, const std::string& words) {
  if (options.dry_run) return show_plan(plan, options);
  ETSTREAM_TRY(write_output(plan, options.output, options));
  if (options.json) {
    print_json(report);
  } else {
    say("{}: {}\n", options.output, words);
  }
  return {};
}

Result<void> show_or_write(const FilePlan& plan, const OutputOptions& options, const std::string& noun,
                           std::size_t count) {
  return show_or_write(plan, options, {{"output", options.output}, {"size", plan.size}, {noun + "s", count}},
                       text("{}, {}", counted(count, noun), readable_size(plan.size)));
}

}  // namespace etstream::cli
