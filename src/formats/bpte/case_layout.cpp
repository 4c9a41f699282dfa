// SPDX-License-Identifier: BSD-3-Clause
#include "formats/bpte/case_layout.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "etstream/dim_order.h"
#include "formats/tensor/dimensions.h"

namespace etstream {
namespace {

/// Returns whether the tensor has no order of its own. An order other than the contiguous one is its own.
bool is_in_any_order(const Tensor& tensor) {
  return tensor.any_order && tensor.dim_order == contiguous_dim_order(tensor.sizes.size());
}

void lay_out(const std::vector<ValueInfo>& infos, std::vector<Value>& values, WhichTensors which) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    auto* const tensor = std::get_if<Tensor>(&values[i]);
    if (!tensor || (which == WhichTensors::kInAnyOrder && !is_in_any_order(*tensor))) continue;
    auto order = order_in_method(infos, i, *tensor);
    if (!order || *order == tensor->dim_order) continue;
    auto moved = with_dim_order(*tensor, *std::move(order));
    if (moved) *tensor = *std::move(moved);  // check_test_case() says what is wrong with others
  }
}

bool has_any_order(const std::vector<Value>& values) {
  return std::ranges::any_of(values, [](const Value& value) {
    const auto* tensor = std::get_if<Tensor>(&value);
    return tensor && is_in_any_order(*tensor);
  });
}

bool has_any_order(const std::vector<MethodTestSuite>& suites) {
  return std::ranges::any_of(suites, [](const MethodTestSuite& suite) {
    return std::ranges::any_of(suite.test_cases, [](const MethodTestCase& test_case) {
      return has_any_order(test_case.inputs) || has_any_order(test_case.expected_outputs);
    });
  });
}

}  // namespace

std::optional<std::vector<std::uint8_t>> order_in_method(const std::vector<ValueInfo>& infos,
                                                         std::size_t index, const Tensor& tensor) {
  const auto* info = index < infos.size() ? std::get_if<TensorInfo>(&infos[index]) : nullptr;
  if (!info || !is_permutation(info->dim_order, tensor.sizes.size())) return std::nullopt;
  return info->dim_order;
}

ProgramMethods::ProgramMethods(const Result<ProgramFile>& program) {
  if (!program) return;
  auto methods = program->methods();
  if (!methods) return;
  methods_ = *std::move(methods);
  for (const MethodInfo& method : methods_) by_name_.try_emplace(method.name, &method);
}

const MethodInfo* ProgramMethods::find(std::string_view name) const {
  const auto method = by_name_.find(name);
  return method == by_name_.end() ? nullptr : method->second;
}

void lay_out(const MethodInfo& method, MethodTestCase& test_case, WhichTensors which) {
  lay_out(method.inputs, test_case.inputs, which);
  lay_out(method.outputs, test_case.expected_outputs, which);
}

std::vector<MethodTestSuite> laid_out(const BundledProgram& bundle) {
  std::vector<MethodTestSuite> suites = bundle.method_test_suites;
  if (!has_any_order(suites)) return suites;
  const ProgramMethods methods(ProgramFile::open(bundle.program));
  for (MethodTestSuite& suite : suites) {
    const MethodInfo* const method = methods.find(suite.method_name);
    if (method == nullptr) continue;
    for (MethodTestCase& test_case : suite.test_cases) {
      lay_out(*method, test_case, WhichTensors::kInAnyOrder);
    }
  }
  return suites;
}

}  // namespace etstream
