// SPDX-License-Identifier: BSD-3-Clause
#include "formats/bpte/cases/suite_labels.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string_view>

#include "core/base/text.h"

namespace etstream {

std::vector<std::string> suite_labels(const std::vector<BundledProgramFile::Suite>& suites) {
  constexpr std::size_t kLongest = 64;
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  std::set<std::string_view> seen;
  std::vector<std::string> out;
  out.reserve(suites.size());
  for (std::size_t i = 0; i < suites.size(); ++i) {
    const std::string& name = suites[i].method_name;
    const bool plain = !name.empty() && name.size() <= kLongest && std::ranges::all_of(name, is_plain);
    // A plain word has no '-'.
    out.push_back(plain && seen.insert(name).second ? name : text("suite-{}", i));
  }
  return out;
}

}  // namespace etstream
