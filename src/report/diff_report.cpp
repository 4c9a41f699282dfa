// SPDX-License-Identifier: BSD-3-Clause
#include "report/diff_report.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

namespace etstream {

void ignore_layout(FileDiff& found) {
  std::erase_if(found.differences, [](const DiffEntry& one) { return one.kind == DiffEntry::Kind::kLayout; });
}

nlohmann::ordered_json differences_to_json(const std::string& a, const std::string& b,
                                           const FileDiff& found) {
  auto differences = nlohmann::ordered_json::array();
  for (const DiffEntry& one : found.differences) {
    differences.push_back({{"kind", one.kind == DiffEntry::Kind::kContent ? "content" : "layout"},
                           {"subject", one.subject},
                           {"a", one.in_a},
                           {"b", one.in_b}});
  }
  return {{"a", a},
          {"b", b},
          {"same_bytes", found.same_bytes},
          {"same_content", found.same_content},
          {"differences", std::move(differences)}};
}

}  // namespace etstream
