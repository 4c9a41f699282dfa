// SPDX-License-Identifier: BSD-3-Clause
#include "cli/plan_report.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/text.h"
#include "report/json_report.h"

namespace etstream::cli {
namespace {

constexpr std::size_t kMostExtents = 40;

/// The extents that a table shows: the largest, in file order.
std::vector<const Extent*> rows_of(const Layout& layout) {
  std::vector<const Extent*> rows;
  for (const Extent& extent : layout.extents) rows.push_back(&extent);
  if (rows.size() <= kMostExtents) return rows;
  std::nth_element(rows.begin(), rows.begin() + kMostExtents, rows.end(),
                   [](const Extent* a, const Extent* b) { return a->size() > b->size(); });
  rows.resize(kMostExtents);
  std::sort(rows.begin(), rows.end(), [](const Extent* a, const Extent* b) { return a->offset < b->offset; });
  return rows;
}

nlohmann::ordered_json plan_to_json(const Layout& layout) {
  nlohmann::ordered_json out = {{"size", layout.size},
                                {"metadata_size", layout.metadata_size},
                                {"payload_size", layout.payload_size},
                                {"memory", layout.memory()},
                                {"extents", nlohmann::ordered_json::array()}};
  for (const Extent& extent : layout.extents) {
    out["extents"].push_back({{"offset", extent.offset},
                              {"size", extent.size()},
                              {"alignment", extent.alignment},
                              {"label", layout.label(extent)},
                              {"source", extent.source.name()}});
  }
  return out;
}

void print_table(const Layout& layout) {
  const auto rows = rows_of(layout);
  std::printf("%14s %14s %6s  %-24s %s\n", "offset", "size", "align", "what", "from");
  for (const Extent* extent : rows) {
    std::printf("%14" PRIu64 " %14" PRIu64 " %6" PRIu32 "  %-24s %s\n", extent->offset, extent->size(),
                extent->alignment, layout.label(*extent).c_str(), extent->source.name().c_str());
  }
  if (rows.size() < layout.extents.size()) {
    std::printf("... and %s, none larger; --json lists all\n",
                counted(layout.extents.size() - rows.size(), "smaller extent").c_str());
  }
  std::printf("%s (%" PRIu64 " bytes) in all, %s of it metadata; writing takes about %s of memory\n",
              readable_size(layout.size).c_str(), layout.size, readable_size(layout.metadata_size).c_str(),
              readable_size(layout.memory()).c_str());
}

}  // namespace

void print_plan(const Layout& layout, bool as_json, const Layout* weights) {
  if (as_json) {
    nlohmann::ordered_json plan = plan_to_json(layout);
    if (weights) plan["weights"] = plan_to_json(*weights);
    print_json(plan);
    return;
  }
  print_table(layout);
  if (!weights) return;
  std::printf("\nthe weights:\n");
  print_table(*weights);
}

}  // namespace etstream::cli
