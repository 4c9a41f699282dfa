// SPDX-License-Identifier: BSD-3-Clause
#include "report/reports.h"

#include <nlohmann/json.hpp>

namespace etstream {

// nlohmann-json finds it by its arguments, so it is in no namespace of its own.
static void to_json(nlohmann::ordered_json& out, const DiffEntry& one) {
  out = {{"kind", one.kind == DiffEntry::Kind::kContent ? "content" : "layout"},
         {"subject", one.subject},
         {"a", one.in_a},
         {"b", one.in_b}};
}

void ignore_layout(FileDiff& found) {
  std::erase_if(found.differences, [](const DiffEntry& one) { return one.kind == DiffEntry::Kind::kLayout; });
}

nlohmann::ordered_json differences_to_json(const std::string& a, const std::string& b,
                                           const FileDiff& found) {
  return {{"a", a},
          {"b", b},
          {"same_bytes", found.same_bytes},
          {"same_content", found.same_content},
          {"differences", found.differences}};
}

}  // namespace etstream
