// SPDX-License-Identifier: BSD-3-Clause
#include "present/reports.h"

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string_view>

namespace etstream {

static std::string_view name_of(DiffEntry::Kind kind) {
  static constexpr std::string_view kNames[] = {"content", "layout", "tolerated"};
  return kNames[static_cast<std::size_t>(kind)];
}

// nlohmann-json finds this by its arguments, so it is in no namespace of its own.
static void to_json(nlohmann::ordered_json& out, const DiffEntry& one) {
  out = {{"kind", name_of(one.kind)}, {"subject", one.subject}, {"a", one.in_a}, {"b", one.in_b}};
  if (!one.elements) return;
  out["elements"] = one.elements->elements;
  out["equal"] = one.elements->equal;
  out["not_finite"] = one.elements->not_finite;
  out["largest_difference"] = one.elements->largest;
  out["mean_difference"] = one.elements->mean;
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
          {"same_within_tolerance", found.same_within_tolerance},
          {"differences", found.differences}};
}

}  // namespace etstream
