// SPDX-License-Identifier: BSD-3-Clause
//
// The order in which the elements of a test case's tensors lie.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "etstream/bundled_program.h"
#include "etstream/program.h"
#include "etstream/result.h"

namespace etstream {

/// Returns the dim_order of a method's input or output `index`, if it is a tensor like `tensor`.
[[nodiscard]] std::optional<std::vector<std::uint8_t>> order_in_method(const std::vector<ValueInfo>& infos,
                                                                       std::size_t index,
                                                                       const Tensor& tensor);

/// The methods of a bundle's program by name. They decide the order of tensors for which no order is given.
/// It has no methods if the program can't be read.
class ProgramMethods {
 public:
  explicit ProgramMethods(const Result<ProgramFile>& program);
  ProgramMethods(const ProgramMethods&) = delete;
  ProgramMethods& operator=(const ProgramMethods&) = delete;

  /// Returns the first method of that name, which ExecuTorch takes; null if there is none.
  [[nodiscard]] const MethodInfo* find(std::string_view name) const;

 private:
  std::vector<MethodInfo> methods_;
  std::map<std::string_view, const MethodInfo*> by_name_;
};

enum class WhichTensors { kInAnyOrder, kAll };

/// Gives the elements of tensors the order that the method has; a tensor that is unlike the method's keeps
/// its order. Their bytes are read when they are needed.
void lay_out(const MethodInfo& method, MethodTestCase& test_case, WhichTensors which);

/// Does the same for the tensors in any order of all suites, by the methods of the program. If the program
/// can't be read, they stay as they are.
[[nodiscard]] std::vector<MethodTestSuite> laid_out(const BundledProgram& bundle);

}  // namespace etstream
