// SPDX-License-Identifier: BSD-3-Clause
#include "formats/bpte/bundled_program.h"

#include "bundled_program_bfbs_generated.h"
#include "bundled_program_fields_generated.h"
#include "core/base/findings.h"
#include "core/base/match.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/bundled_program.h"
#include "etstream/program.h"
#include "flatbuffer/schema.h"
#include "formats/bpte/segmented_bundle.h"
#include "formats/bpte/test_cases.h"
#include "formats/pte/program_model.h"

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

Result<Findings> check(const BundledProgram& bundle) {
  return without_exceptions([&]() -> Result<Findings> {
    Findings findings;
    ETSTREAM_ASSIGN(const ProgramFile program, ProgramFile::open(bundle.program));
    ETSTREAM_TRY(verify_loadable(program, LoadedFrom::kMemory, findings));
    ETSTREAM_ASSIGN(const auto methods, program.methods());
    const MethodNames names(methods);
    for (const MethodTestSuite& suite : laid_out(bundle)) {
      const MethodInfo* method = names.find(suite.method_name, findings);
      for (std::size_t i = 0; method && i < suite.test_cases.size(); ++i) {
        check_test_case(*method, suite.test_cases[i], i, findings);
      }
    }
    return findings;
  });
}

Result<FilePlan> plan(const BundledProgram& given, const BundledProgramOptions& options) {
  return without_exceptions([&]() -> Result<FilePlan> {
    const BundledProgram bundle{given.version, laid_out(given), given.program};
    if (!options.unchecked) {
      ETSTREAM_ASSIGN(const Findings findings, check(bundle));
      if (!findings.ok()) {
        return unsound(ErrorCode::kInvalidArgument, "", findings, AdviceTerm::kCheckBundle);
      }
    }
    if (options.format == BundleFormat::kSegmented) {
      return plan_segmented_bundle(bundle,
                                   {.hash = options.hash, .program_alignment = options.program_alignment});
    }
    ETSTREAM_ASSIGN(const Schema* compiled, bundled_program_schema());
    Schema schema = *compiled;
    const bundled_program::Fields fields(schema);
    const BoundField& program = fields.bundled_program.program;
    ETSTREAM_TRY(schema.set_alignment(program.table_name(), program.name(), options.program_alignment));
    const auto bindings = bundled_program_bindings(fields);
    StructReader reader(bind_fields(schema, bindings), &bundle);
    auto plan = pack(schema, reader, bundle_packer_options(options.writer));
    if (!plan && plan.error().code == ErrorCode::kTooLarge) {
      plan.error().message += text(" (BP08 bundle of a program of {} bytes)", bundle.program.size());
      plan.error().advice = {"a segmented bundle can be of any size"};
    }
    return plan;
  });
}

Result<void> write_file(const BundledProgram& bundle, const std::string& path,
                        const BundledProgramFileOptions& options) {
  ETSTREAM_ASSIGN(const FilePlan plan, plan(bundle, options));
  ETSTREAM_ASSIGN(const auto sink, open_file_sink(path, options.file));
  return write(plan, *sink, options.progress);
}

}  // namespace etstream
