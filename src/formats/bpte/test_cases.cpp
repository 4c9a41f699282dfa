// SPDX-License-Identifier: BSD-3-Clause
#include "formats/bpte/test_cases.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <variant>

#include "core/base/findings.h"
#include "core/base/match.h"
#include "core/base/text.h"
#include "etstream/tensor.h"
#include "formats/tensor/dimensions.h"

namespace etstream {
namespace {

/// A value's problem, as the end of a sentence.
using Problem = std::optional<std::string>;

/// Checks a shape by ExecuTorch's rules for resizing. The rank is fixed, and so are the sizes of a static
/// tensor. The sizes of a dynamic tensor are the bounds that the method was exported for: its kernels and its
/// memory are planned for nothing larger, though the tensor itself only refuses more elements
/// (TensorImpl::internal_resize_contiguous).
Problem check_shape(const TensorInfo& expected, const std::vector<std::int32_t>& found) {
  const bool is_static = expected.dynamism == ShapeDynamism::kStatic;
  const std::string shapes = text("has shape {}, expected {}{}", list_text(found),
                                  is_static ? "" : "at most ", list_text(expected.sizes));
  if (found.size() != expected.sizes.size()) {
    return text("{}: it has {}, not {}", shapes, counted(found.size(), "dimension"), expected.sizes.size());
  }
  if (is_static) return found == expected.sizes ? Problem() : shapes;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i] > expected.sizes[i])
      return text("{}: {} is over the bound of dimension {}", shapes, found[i], i);
  }
  return std::nullopt;
}

Problem check_fit(const TensorInfo& expected, const Tensor& found) {
  if (found.scalar_type != expected.scalar_type) {
    return text("is {}, expected {}", name_of(found.scalar_type), name_of(expected.scalar_type));
  }
  return check_shape(expected, found.sizes);
}

/// Returns whether Method::set_input takes `given` for the scalar that the method was exported with. A double
/// may differ within this tolerance.
bool same_scalar(std::int64_t exported, std::int64_t given) { return exported == given; }
bool same_scalar(bool exported, bool given) { return exported == given; }
bool same_scalar(double exported, double given) {
  constexpr double kAbsolute = 1e-4;
  constexpr double kRelative = 1e-5;
  if (std::isnan(exported) && std::isnan(given)) return true;
  if (std::isinf(exported) || std::isinf(given)) return exported == given;
  return std::abs(given - exported) <= kAbsolute + std::abs(kRelative * exported);
}

std::string scalar_text(std::int64_t value) { return std::to_string(value); }
std::string scalar_text(bool value) { return value ? "true" : "false"; }
std::string scalar_text(double value) { return exact_text(value); }

std::string kind_of(const Value& value) {
  return match(
      value, [](std::monostate) { return "nothing (null)"; }, [](const Tensor&) { return "a tensor"; },
      [](std::int64_t) { return "an integer"; }, [](bool) { return "a bool"; },
      [](double) { return "a double"; });
}

std::string expected_kind(const ValueInfo& info) {
  return match(
      info, [](const TensorInfo&) { return std::string("a tensor"); },
      [](std::int64_t) { return std::string("an integer"); }, [](bool) { return std::string("a bool"); },
      [](double) { return std::string("a double"); },
      [](const OtherInfo& other) { return text("a {}, which no test case can hold", other.kind); });
}

/// Checks one input or expected output of a test case.
class ValueCheck {
 public:
  ValueCheck(bool is_input, std::string where, Findings& findings)
      : is_input_(is_input), where_(std::move(where)), findings_(findings) {}

  void run(const ValueInfo& expected, const Value& found) {
    match(
        expected, [&](const TensorInfo& info) { run_tensor(info, found); },
        [&](const OtherInfo&) { wrong_kind(expected, found); },
        [&](const auto& scalar) { run_scalar(scalar, found); });
  }

 private:
  void run_tensor(const TensorInfo& expected, const Value& found) {
    const auto* tensor = std::get_if<Tensor>(&found);
    if (!tensor) return wrong_kind(expected, found);
    auto problem = problem_of(*tensor);
    if (!problem) problem = check_fit(expected, *tensor);
    if (problem) return error(*problem);
    if (tensor->dim_order == expected.dim_order || tensor->data.size() == 0) return;
    if (is_input_) {
      warning(
          "lies in another dim_order than the method's input, and ExecuTorch copies it as it lies: the "
          "method sees its elements in other places (a channels-last input bundled as contiguous)");
    } else {
      error("has another dim_order than the method's output, and ExecuTorch aborts when it compares them");
    }
  }

  template <class T>
  void run_scalar(const T& exported, const Value& found) {
    const auto* given = std::get_if<T>(&found);
    if (!given) return wrong_kind(exported, found);
    if (!is_input_) return warning("is a scalar, and ExecuTorch compares tensors only");
    if (same_scalar(exported, *given)) return;
    error(text("is {}, but the method was exported with {} and ExecuTorch refuses another value",
               scalar_text(*given), scalar_text(exported)));
  }

  void wrong_kind(const ValueInfo& expected, const Value& found) {
    error(text("is {}, expected {}", kind_of(found), expected_kind(expected)));
  }
  void error(const std::string& what) { add_error(findings_, where_ + " " + what); }
  void warning(const std::string& what) { add_warning(findings_, where_ + " " + what); }

  bool is_input_;
  std::string where_;
  Findings& findings_;
};

void check_values(bool are_inputs, const std::vector<ValueInfo>& expected, const std::vector<Value>& found,
                  const std::string& where, Findings& findings) {
  const std::string_view what = are_inputs ? "input" : "expected output";
  if (found.size() != expected.size()) {
    return add_error(
        findings, text("{}{} given, the method has {}", where, counted(found.size(), what), expected.size()));
  }
  for (std::size_t i = 0; i < found.size(); ++i) {
    ValueCheck(are_inputs, text("{}{} {}", where, what, i), findings).run(expected[i], found[i]);
  }
}

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

std::vector<MethodInfo> methods_of(const Result<ProgramFile>& program) {
  if (!program) return {};
  auto methods = program->methods();
  return methods ? *std::move(methods) : std::vector<MethodInfo>();
}

MethodNames::MethodNames(const std::vector<MethodInfo>& methods)
    : listed_(names_text(methods, &MethodInfo::name)) {
  for (const MethodInfo& method : methods) methods_.try_emplace(method.name, &method);
}

const MethodInfo* MethodNames::find(std::string_view name) const {
  const auto found = methods_.find(name);
  return found == methods_.end() ? nullptr : found->second;
}

const MethodInfo* MethodNames::find(std::string_view name, Findings& findings) const {
  const MethodInfo* const found = find(name);
  if (found == nullptr) {
    add_error(findings, text("method {}: the program has no such method, but {}", quote(name), listed_));
  }
  return found;
}

void check_test_case(const MethodInfo& method, const MethodTestCase& test_case, std::size_t index,
                     Findings& findings) {
  const std::string where = text("method {}, test case {}: ", quote(method.name), index);
  check_values(true, method.inputs, test_case.inputs, where, findings);
  // A case without expected outputs is for profiling.
  if (test_case.expected_outputs.empty()) return;
  check_values(false, method.outputs, test_case.expected_outputs, where, findings);
}

std::optional<std::vector<std::uint8_t>> order_in_method(const std::vector<ValueInfo>& infos,
                                                         std::size_t index, const Tensor& tensor) {
  const auto* info = index < infos.size() ? std::get_if<TensorInfo>(&infos[index]) : nullptr;
  if (!info || !is_permutation(info->dim_order, tensor.sizes.size())) return std::nullopt;
  return info->dim_order;
}

void lay_out(const MethodInfo& method, MethodTestCase& test_case, WhichTensors which) {
  lay_out(method.inputs, test_case.inputs, which);
  lay_out(method.outputs, test_case.expected_outputs, which);
}

std::vector<MethodTestSuite> laid_out(const BundledProgram& bundle) {
  std::vector<MethodTestSuite> suites = bundle.method_test_suites;
  if (!has_any_order(suites)) return suites;
  const auto methods = methods_of(ProgramFile::open(bundle.program));
  const MethodNames names(methods);
  for (MethodTestSuite& suite : suites) {
    const MethodInfo* const method = names.find(suite.method_name);
    if (method == nullptr) continue;
    for (MethodTestCase& test_case : suite.test_cases) {
      lay_out(*method, test_case, WhichTensors::kInAnyOrder);
    }
  }
  return suites;
}

}  // namespace etstream
