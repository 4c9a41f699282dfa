// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/bundled_program.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <numeric>

#include "base/checked.h"
#include "base/text.h"
#include "base/try.h"
#include "bundled_program_bfbs_generated.h"
#include "schema/schema_packer.h"
#include "schema/struct_reader.h"

namespace etstream {
namespace {

constexpr std::string_view kProgramIdentifier = "ET12";

/// A union's value: the number of its member, and what that table is read from.
FieldValue value_union(const Value& value) {
  struct Visitor {
    FieldValue operator()(std::monostate) const { return AbsentValue{}; }
    FieldValue operator()(const Tensor& held) const { return UnionValue{1, {&held, 0}}; }
    FieldValue operator()(const std::int64_t& held) const { return UnionValue{2, {&held, 0}}; }
    FieldValue operator()(const bool& held) const { return UnionValue{3, {&held, 0}}; }
    FieldValue operator()(const double& held) const { return UnionValue{4, {&held, 0}}; }
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

Result<void> check_dim_order(const Tensor& tensor) {
  const std::size_t dimensions = tensor.sizes.size();
  std::bitset<kMostDimensions> seen;
  for (const std::uint8_t dimension : tensor.dim_order) {
    if (dimension < dimensions) seen.set(dimension);
  }
  if (tensor.dim_order.size() == dimensions && seen.count() == dimensions) return {};
  return make_error(ErrorCode::kInvalidArgument, "its dim_order is not a permutation of its ", dimensions,
                    " dimensions");
}

Result<void> check_tensor(const Tensor& tensor) {
  if (item_size(tensor.scalar_type) == 0) {
    return make_error(ErrorCode::kInvalidArgument, "its scalar type ", static_cast<int>(tensor.scalar_type),
                      " is not one of ExecuTorch's");
  }
  if (tensor.sizes.size() > kMostDimensions) {
    return make_error(ErrorCode::kInvalidArgument, "it has ", tensor.sizes.size(),
                      " dimensions, ExecuTorch's tensors have at most ", kMostDimensions);
  }
  ETSTREAM_TRY(check_dim_order(tensor));
  ETSTREAM_ASSIGN(const std::uint64_t expected, byte_size(tensor.scalar_type, tensor.sizes));
  if (tensor.data.size() == expected) return {};
  return make_error(ErrorCode::kInvalidArgument, "its data is ", tensor.data.size(),
                    " bytes, expected ", expected, " from its sizes and ", name_of(tensor.scalar_type));
}

Result<void> check_values(const std::vector<Value>& values, std::string_view which) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto* tensor = std::get_if<Tensor>(&values[i]);
    if (!tensor) continue;
    if (auto checked = check_tensor(*tensor); !checked) {
      return make_error(checked.error().code, which, " ", i, ": ", checked.error().message);
    }
  }
  return {};
}

Result<void> check_suite(const MethodTestSuite& suite) {
  for (std::size_t i = 0; i < suite.test_cases.size(); ++i) {
    const MethodTestCase& test_case = suite.test_cases[i];
    auto checked = check_values(test_case.inputs, "input");
    if (checked) checked = check_values(test_case.expected_outputs, "expected output");
    if (checked) continue;
    return make_error(checked.error().code, "method ", quote(suite.method_name), ", test case ", i, ", ",
                      checked.error().message);
  }
  return {};
}

Result<void> check_program(const ByteSource& program) {
  constexpr std::uint64_t kOffset = 4;
  std::array<char, 4> found{};
  if (program.size() >= kOffset + found.size()) {
    ETSTREAM_TRY(program.read_at(kOffset, std::as_writable_bytes(std::span(found))));
  }
  const std::string_view identifier(found.data(), found.size());
  if (identifier == kProgramIdentifier) return {};
  return make_error(ErrorCode::kInvalidArgument, program.name(),
                    ": not an ExecuTorch program (.pte): expected ", quote(kProgramIdentifier),
                    " at offset ", kOffset, ", found ", quote(identifier));
}

Result<void> check(const BundledProgram& bundle) {
  ETSTREAM_TRY(check_program(bundle.program));
  for (const MethodTestSuite& suite : bundle.method_test_suites) ETSTREAM_TRY(check_suite(suite));
  return {};
}

Result<Schema> bundled_program_schema(const BundledProgramOptions& options) {
  using Binary = bundled_program::BundledProgramBinarySchema;
  ETSTREAM_ASSIGN(Schema schema,
                  Schema::from_binary(std::as_bytes(std::span(Binary::data(), Binary::size()))));
  ETSTREAM_TRY(schema.set_alignment("BundledProgram", "program", options.program_alignment));
  return schema;
}

}  // namespace

std::vector<std::uint8_t> contiguous_dim_order(std::size_t dimensions) {
  std::vector<std::uint8_t> order(dimensions);
  std::iota(order.begin(), order.end(), std::uint8_t{0});
  return order;
}

Result<Layout> plan(const BundledProgram& bundle, const BundledProgramOptions& options) {
  return without_exceptions([&]() -> Result<Layout> {
    if (!options.unchecked) ETSTREAM_TRY(check(bundle));
    ETSTREAM_ASSIGN(const Schema schema, bundled_program_schema(options));
    ETSTREAM_ASSIGN(auto bound, StructReader::bind(schema, kBindings));
    StructReader reader(std::move(bound), &bundle);
    auto layout = pack(schema, reader);
    if (!layout && layout.error().code == ErrorCode::kTooLarge) {
      layout.error().message += text(
          " (BP08 bundle of a program of ", bundle.program.size(),
          " bytes). Export with external constants, so that the weights go to a .ptd file, to make the "
          "program smaller");
    }
    return layout;
  });
}

Result<void> write_file(const BundledProgram& bundle, const std::string& path,
                        const BundledProgramFileOptions& options) {
  ETSTREAM_ASSIGN(const Layout layout, plan(bundle, options));
  ETSTREAM_ASSIGN(const auto sink, open_file_sink(path, options.file));
  return write(layout, *sink, options.progress);
}

}  // namespace etstream
