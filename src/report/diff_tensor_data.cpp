// SPDX-License-Identifier: BSD-3-Clause
#include "report/diff_list.h"
#include "tensor/dimensions.h"

namespace etstream {
namespace {

std::string entry_text(const NamedTensorData& entry) {
  if (!entry.layout) return "no tensor";
  return text("{} {} in order {}", name_of(entry.layout->scalar_type), list_text(entry.layout->sizes),
              list_text(entry.layout->dim_order));
}

}  // namespace

Result<bool> diff_files(const TensorDataFile& a, const TensorDataFile& b, DiffList list) {
  ETSTREAM_ASSIGN(const auto version_a, a.version());
  ETSTREAM_ASSIGN(const auto version_b, b.version());
  list.compare("version", std::to_string(version_a), std::to_string(version_b));
  ETSTREAM_ASSIGN(const auto entries_a, a.entries());
  ETSTREAM_ASSIGN(const auto entries_b, b.entries());
  const auto key = [](const NamedTensorData& entry) { return quote(entry.key); };
  for (const auto& [name, both] : by_key<NamedTensorData>(entries_a, entries_b, key)) {
    list.compare(name, both.first ? entry_text(*both.first) : "",
                 both.second ? entry_text(*both.second) : "");
    if (!both.first || !both.second) continue;
    ETSTREAM_TRY(list.compare_bytes(name, entry_text(*both.first), both.first->data, both.second->data));
    list.compare_layout(name, text("in segment {}", both.first->segment),
                        text("in segment {}", both.second->segment));
  }
  const bool same = !list.has_content();
  ETSTREAM_TRY(diff_places(a, b, same, list));
  return same;
}

}  // namespace etstream
