// SPDX-License-Identifier: BSD-3-Clause
#include "formats/bpte/bundled_program_schema.h"

#include "bundled_program_bfbs_generated.h"
#include "bundled_program_fields_generated.h"
#include "core/base/match.h"
#include "etstream/bundled_program.h"
#include "flatbuffer/schema.h"

namespace etstream {
namespace {

/// Makes a union's value: the number of its member, and the object from which that table is read. The
/// alternatives of Value are in the order of the union's members, after the alternative for no value.
FieldValue value_union(const Value& value) {
  return match(
      value, [](std::monostate) -> FieldValue { return AbsentValue{}; },
      [&](const auto& held) -> FieldValue {
        return UnionValue{static_cast<std::uint8_t>(value.index()), {&held, 0}};
      });
}

}  // namespace

std::vector<FieldBinding> bundled_program_bindings(const bundled_program::Fields& fields) {
  // clang-format off
  return {
      {fields.bundled_program.version, [](const void* o) { return scalar(get<BundledProgram>(o).version); }},
      {fields.bundled_program.method_test_suites, [](const void* o) { return table_vector(get<BundledProgram>(o).method_test_suites); }},
      {fields.bundled_program.program, [](const void* o) -> FieldValue { return get<BundledProgram>(o).program; }},
      {fields.bundled_method_test_suite.method_name, [](const void* o) -> FieldValue { return std::string_view(get<MethodTestSuite>(o).method_name); }},
      {fields.bundled_method_test_suite.test_cases, [](const void* o) { return table_vector(get<MethodTestSuite>(o).test_cases); }},
      {fields.bundled_method_test_case.inputs, [](const void* o) { return table_vector(get<MethodTestCase>(o).inputs); }},
      {fields.bundled_method_test_case.expected_outputs, [](const void* o) { return table_vector(get<MethodTestCase>(o).expected_outputs); }},
      {fields.value.val, [](const void* o) { return value_union(get<Value>(o)); }},
      {fields.tensor.scalar_type, [](const void* o) { return scalar(get<Tensor>(o).scalar_type); }},
      {fields.tensor.sizes, [](const void* o) { return scalar_vector(get<Tensor>(o).sizes); }},
      {fields.tensor.data, [](const void* o) -> FieldValue { return get<Tensor>(o).data; }},
      {fields.tensor.dim_order, [](const void* o) { return scalar_vector(get<Tensor>(o).dim_order); }},
      {fields.int_.int_val, [](const void* o) { return scalar(get<std::int64_t>(o)); }},
      {fields.bool_.bool_val, [](const void* o) { return scalar(get<bool>(o)); }},
      {fields.double_.double_val, [](const void* o) { return scalar(get<double>(o)); }},
  };
  // clang-format on
}

Result<const Schema*> bundled_program_schema() {
  return embedded_schema<bundled_program::BundledProgramBinarySchema>();
}

PackerOptions bundle_packer_options(const WriterVersion& writer) {
  PackerOptions options;
  // Until 1.3 bundles went through JSON and flatc.
  if (writer.release <= ExecutorchRelease::k1_3) options.order = ObjectOrder::kFlatc;
  options.vtables = writer.vtables;
  return options;
}

}  // namespace etstream
