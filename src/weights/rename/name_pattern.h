// SPDX-License-Identifier: BSD-3-Clause
//
// NamePattern: names of tensors with '*' for any one or more characters other than '.'.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace etstream {

class NamePattern {
 public:
  explicit NamePattern(std::string_view pattern);

  /// How many '*' it has.
  [[nodiscard]] std::size_t stars() const noexcept { return pieces_.size() - 1; }
  /// Whether `key` is of this pattern. If so, `runs` gets what each '*' stands for, parts of `key`, each as
  /// short as may be but the last one. Time: that of searching `key` for each piece once.
  [[nodiscard]] bool matches(std::string_view key, std::vector<std::string_view>& runs) const;
  /// The pattern with a run in place of each '*', of which there are as many or more.
  [[nodiscard]] std::string filled(const std::vector<std::string_view>& runs) const;

 private:
  std::vector<std::string> pieces_;  // what is between the '*'; one more than those
};

}  // namespace etstream
