// SPDX-License-Identifier: BSD-3-Clause
//
// Whether test cases fit the methods of a program. ExecuTorch's own reader (devtools/bundled_program) trusts
// that they do, and reads out of bounds where they don't.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "etstream/bundled_program.h"
#include "etstream/findings.h"
#include "etstream/program.h"

namespace etstream {

/// Methods by their names; of several the first. They outlive it.
class MethodNames {
 public:
  explicit MethodNames(const std::vector<MethodInfo>& methods);

  /// The method that a suite names; adds an error if there is none.
  [[nodiscard]] const MethodInfo* find(std::string_view name, Findings& findings) const;

 private:
  std::map<std::string_view, const MethodInfo*> methods_;
  std::string listed_;  // the first names, for messages
};

/// Adds what keeps `test_case`, which is number `index` of `method`'s suite, from running on ExecuTorch
/// 1.5.1: inputs or outputs that are not as many, of the kind, of the dtype or of the shape that the method
/// has; data that is not as long as its shape says; more than 16 dimensions.
void check_test_case(const MethodInfo& method, const MethodTestCase& test_case, std::size_t index,
                     Findings& findings);

}  // namespace etstream
