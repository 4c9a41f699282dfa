// SPDX-License-Identifier: BSD-3-Clause
#include "cli/plan_report.h"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/print.h"
#include "base/text.h"
#include "base/try.h"
#include "cli/output.h"
#include "report/json_report.h"

namespace etstream::cli {
namespace {

constexpr std::size_t kMostExtents = 40;

/// The extents that a table shows: the largest, in file order.
std::vector<const Extent*> rows_of(const FilePlan& plan) {
  std::vector<const Extent*> rows;
  for (const Extent& extent : plan.extents) rows.push_back(&extent);
  if (rows.size() <= kMostExtents) return rows;
  std::nth_element(rows.begin(), rows.begin() + kMostExtents, rows.end(),
                   [](const Extent* a, const Extent* b) { return a->size() > b->size(); });
  rows.resize(kMostExtents);
  std::sort(rows.begin(), rows.end(), [](const Extent* a, const Extent* b) { return a->offset < b->offset; });
  return rows;
}

nlohmann::ordered_json plan_to_json(const FilePlan& plan) {
  nlohmann::ordered_json out = {{"size", plan.size},
                                {"metadata_size", plan.metadata_size},
                                {"payload_size", plan.payload_size},
                                {"memory", planned_memory(std::array{&plan})},
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

void print_table(const FilePlan& plan) {
  const auto rows = rows_of(plan);
  say("%14s %14s %6s  %-24s %s\n", "offset", "size", "align", "what", "from");
  for (const Extent* extent : rows) {
    say("%14" PRIu64 " %14" PRIu64 " %6" PRIu32 "  %-24s %s\n", extent->offset, extent->size(),
        extent->alignment, plan.label(*extent).c_str(), extent->source.name().c_str());
  }
  if (rows.size() < plan.extents.size()) {
    say("... and %s, none larger; --json lists all\n",
        counted(plan.extents.size() - rows.size(), "smaller extent").c_str());
  }
  say("%s (%" PRIu64 " bytes) in all, %s of it metadata; writing takes about %s of memory\n",
      readable_size(plan.size).c_str(), plan.size, readable_size(plan.metadata_size).c_str(),
      readable_size(planned_memory(std::array{&plan})).c_str());
}

void print_plan_json(const FilePlan& plan, const std::vector<Output>& tensor_data) {
  nlohmann::ordered_json report = plan_to_json(plan);
  for (const Output& one : tensor_data) {
    if (tensor_data.size() == 1) {
      report["tensor_data"] = plan_to_json(*one.plan);
    } else {
      report["tensor_data"].push_back(plan_to_json(*one.plan));
    }
  }
  print_json(report);
}

}  // namespace

Result<void> show_plan(const FilePlan& plan, const OutputOptions& options,
                       const std::vector<Output>& tensor_data) {
  if (options.json) {
    print_plan_json(plan, tensor_data);
  } else {
    print_table(plan);
    for (const Output& one : tensor_data) {
      say("\nthe tensor data:\n");
      print_table(*one.plan);
    }
  }
  std::vector<Output> outputs = tensor_data;
  outputs.push_back({&plan, options.output});
  return check_limits(outputs, options);
}

Result<void> show_or_write(const FilePlan& plan, const OutputOptions& options, const std::string& noun,
                           std::size_t count) {
  if (options.dry_run) return show_plan(plan, options);
  ETSTREAM_TRY(write_output(plan, options.output, options));
  if (options.json) {
    print_json({{"output", options.output}, {"size", plan.size}, {noun + "s", count}});
  } else if (!is_standard_output(options.output)) {
    say("%s: %s, %s\n", options.output.c_str(), counted(count, noun).c_str(),
        readable_size(plan.size).c_str());
  }
  return {};
}

}  // namespace etstream::cli
