// SPDX-License-Identifier: BSD-3-Clause
//
// The order in which the elements of a test case's tensors lie.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "etstream/bundled_program.h"
#include "etstream/program.h"

namespace etstream {

/// The dim_order that input or output `index` of a method has, if that is one of a tensor like `tensor`.
[[nodiscard]] std::optional<std::vector<std::uint8_t>> order_in_method(const std::vector<ValueInfo>& infos,
                                                                       std::size_t index,
                                                                       const Tensor& tensor);

enum class WhichTensors { kInAnyOrder, kAll };

/// Has the elements of tensors lie as the method has them, or as they do where it has no such tensor. Their
/// bytes are read when they are needed.
void lay_out(const MethodInfo& method, MethodTestCase& test_case, WhichTensors which);

/// The same of the tensors in any order of all suites, by the methods of the program; of a program that can't
/// be read, they stay as they are.
[[nodiscard]] std::vector<MethodTestSuite> laid_out(const BundledProgram& bundle);

}  // namespace etstream
