// SPDX-License-Identifier: BSD-3-Clause
//
// Test cases beside the methods of a program: whether they fit, and the order in which the elements of their
// tensors lie.
//
// ExecuTorch's own reader (devtools/bundled_program) does not check that they fit, and reads out of bounds if
// they don't.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "etstream/bundled_program.h"
#include "etstream/program.h"
#include "etstream/result.h"

namespace etstream {

/// Returns the methods of a bundle's program, which decide the order of tensors for which no order is given;
/// none if the program can't be read.
[[nodiscard]] std::vector<MethodInfo> methods_of(const Result<ProgramFile>& program);

/// Methods by their names; the first if there are several, as ExecuTorch takes it. They outlive it.
class MethodNames {
 public:
  explicit MethodNames(const std::vector<MethodInfo>& methods);

  /// Returns null if there is none.
  [[nodiscard]] const MethodInfo* find(std::string_view name) const;
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

/// Returns the dim_order of a method's input or output `index`, if it is a tensor like `tensor`.
[[nodiscard]] std::optional<std::vector<std::uint8_t>> order_in_method(const std::vector<ValueInfo>& infos,
                                                                       std::size_t index,
                                                                       const Tensor& tensor);

enum class WhichTensors { kInAnyOrder, kAll };

/// Gives the elements of tensors the order that the method has; a tensor that is unlike the method's keeps
/// its order. Their bytes are read when they are needed.
void lay_out(const MethodInfo& method, MethodTestCase& test_case, WhichTensors which);

/// Does the same for the tensors in any order of all suites, by the methods of the program. If the program
/// can't be read, they stay as they are.
[[nodiscard]] std::vector<MethodTestSuite> laid_out(const BundledProgram& bundle);

}  // namespace etstream
