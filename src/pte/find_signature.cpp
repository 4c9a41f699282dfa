// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <vector>

#include "pte/operator_signatures.h"

namespace etstream {
namespace {

/// Where each line begins.
std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> out;
  for (std::size_t at = 1; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

std::string_view name_in(std::string_view line) { return line.substr(0, line.find(' ')); }

}  // namespace

std::optional<std::string_view> find_signature(std::string_view name) {
  static const std::vector<std::string_view> kLines = lines_of(kOperatorSignatures);
  const auto before = [](std::string_view line, std::string_view wanted) { return name_in(line) < wanted; };
  const auto found = std::lower_bound(kLines.begin(), kLines.end(), name, before);
  if (found == kLines.end() || name_in(*found) != name) return std::nullopt;
  return found->substr(name.size() + 1);
}

}  // namespace etstream
