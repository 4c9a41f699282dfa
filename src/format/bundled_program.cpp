// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/bundled_program.h"

#include <array>
#include <numeric>

#include "base/text.h"
#include "base/try.h"
#include "etstream/program.h"
#include "format/bundled_program_schema.h"
#include "format/test_case_check.h"
#include "schema/schema_packer.h"
#include "schema/struct_reader.h"

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

/// "method 'forward': ...; and 3 more": the first error, as the one that is returned.
Error first_error(const Findings& findings) {
  const std::size_t more = findings.errors.size() - 1;
  return make_error(ErrorCode::kInvalidArgument, findings.errors.front(),
                    more == 0 ? "" : text("; and ", counted(more, "more error")));
}

}  // namespace

std::vector<std::uint8_t> contiguous_dim_order(std::size_t dimensions) {
  std::vector<std::uint8_t> order(dimensions);
  std::iota(order.begin(), order.end(), std::uint8_t{0});
  return order;
}

Result<Findings> check(const BundledProgram& bundle) {
  return without_exceptions([&]() -> Result<Findings> {
    Findings findings;
    ETSTREAM_ASSIGN(const ProgramFile program, ProgramFile::open(bundle.program));
    ETSTREAM_TRY(program.verify(findings));
    ETSTREAM_ASSIGN(const auto methods, program.methods());
    for (const MethodTestSuite& suite : bundle.method_test_suites) {
      const MethodInfo* method = find_method(methods, suite.method_name, findings);
      for (std::size_t i = 0; method && i < suite.test_cases.size(); ++i) {
        check_test_case(*method, suite.test_cases[i], i, findings);
      }
    }
    return findings;
  });
}

Result<Layout> plan(const BundledProgram& bundle, const BundledProgramOptions& options) {
  return without_exceptions([&]() -> Result<Layout> {
    if (!options.unchecked) {
      ETSTREAM_ASSIGN(const Findings findings, check(bundle));
      if (!findings.ok()) return first_error(findings);
    }
    ETSTREAM_ASSIGN(const Schema* compiled, bundled_program_schema());
    Schema schema = *compiled;
    ETSTREAM_TRY(schema.set_alignment("BundledProgram", "program", options.program_alignment));
    ETSTREAM_ASSIGN(auto bound, StructReader::bind(schema, kBindings));
    StructReader reader(std::move(bound), &bundle);
    auto layout = pack(schema, reader);
    if (!layout && layout.error().code == ErrorCode::kTooLarge) {
      layout.error().message +=
          text(" (BP08 bundle of a program of ", bundle.program.size(),
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
