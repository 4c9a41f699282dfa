// SPDX-License-Identifier: BSD-3-Clause
//
// A check that test cases fit the methods of a program. ExecuTorch's own reader (devtools/bundled_program)
// does not check it, and reads out of bounds if they don't.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "etstream/bundled_program.h"
#include "etstream/findings.h"
#include "etstream/program.h"

namespace etstream {

/// Methods by their names; the first if there are several. They outlive it.
class MethodNames {
 public:
  explicit MethodNames(const std::vector<MethodInfo>& methods);

  /// Returns the method that a suite names; adds an error if there is none.
  [[nodiscard]] const MethodInfo* find(std::string_view name, Findings& findings) const;

 private:
  std::map<std::string_view, const MethodInfo*> methods_;
  std::string listed_;  // the first names, for messages
};

/// Adds the reasons why `test_case`, number `index` of `method`'s suite, can't run on ExecuTorch 1.5.1:
/// inputs or outputs that differ from the method's in number, kind, dtype or shape; data that does not have
/// the size that its shape implies; more than 16 dimensions.
void check_test_case(const MethodInfo& method, const MethodTestCase& test_case, std::size_t index,
                     Findings& findings);

}  // namespace etstream
