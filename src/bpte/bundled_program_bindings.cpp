// SPDX-License-Identifier: BSD-3-Clause
#include "bpte/bundled_program_bindings.h"

#include <array>

#include "bpte/bundled_program_schema.h"
#include "etstream/bundled_program.h"

namespace etstream {
namespace {

/// A union's value: the number of its member, and what that table is read from.
FieldValue value_union(const Value& value) {
  struct Visitor {
    static FieldValue member(ValueUnion type, const void* held) {
      return UnionValue{static_cast<std::uint8_t>(type), {held, 0}};
    }
    FieldValue operator()(std::monostate) const { return AbsentValue{}; }
    FieldValue operator()(const Tensor& held) const { return member(ValueUnion::kTensor, &held); }
    FieldValue operator()(const std::int64_t& held) const { return member(ValueUnion::kInt, &held); }
    FieldValue operator()(const bool& held) const { return member(ValueUnion::kBool, &held); }
    FieldValue operator()(const double& held) const { return member(ValueUnion::kDouble, &held); }
  };
  return std::visit(Visitor{}, value);
}

// clang-format off
constexpr std::array kBindings = {
    FieldBinding{"BundledProgram", "version", [](const void* o) { return scalar(get<BundledProgram>(o).version); }},
    FieldBinding{"BundledProgram", "method_test_suites", [](const void* o) { return table_vector(get<BundledProgram>(o).method_test_suites); }},
    FieldBinding{"BundledProgram", "program", [](const void* o) -> FieldValue { return get<BundledProgram>(o).program; }},
    FieldBinding{"BundledMethodTestSuite", "method_name", [](const void* o) -> FieldValue { return std::string_view(get<MethodTestSuite>(o).method_name); }},
    FieldBinding{"BundledMethodTestSuite", "test_cases", [](const void* o) { return table_vector(get<MethodTestSuite>(o).test_cases); }},
    FieldBinding{"BundledMethodTestCase", "inputs", [](const void* o) { return table_vector(get<MethodTestCase>(o).inputs); }},
    FieldBinding{"BundledMethodTestCase", "expected_outputs", [](const void* o) { return table_vector(get<MethodTestCase>(o).expected_outputs); }},
    FieldBinding{"Value", "val", [](const void* o) { return value_union(get<Value>(o)); }},
    FieldBinding{"Tensor", "scalar_type", [](const void* o) { return scalar(get<Tensor>(o).scalar_type); }},
    FieldBinding{"Tensor", "sizes", [](const void* o) { return scalar_vector(get<Tensor>(o).sizes); }},
    FieldBinding{"Tensor", "data", [](const void* o) -> FieldValue { return get<Tensor>(o).data; }},
    FieldBinding{"Tensor", "dim_order", [](const void* o) { return scalar_vector(get<Tensor>(o).dim_order); }},
    FieldBinding{"Int", "int_val", [](const void* o) { return scalar(get<std::int64_t>(o)); }},
    FieldBinding{"Bool", "bool_val", [](const void* o) { return scalar(get<bool>(o)); }},
    FieldBinding{"Double", "double_val", [](const void* o) { return scalar(get<double>(o)); }},
};
// clang-format on

}  // namespace

std::span<const FieldBinding> bundled_program_bindings() { return kBindings; }

}  // namespace etstream
