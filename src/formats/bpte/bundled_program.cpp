// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/bundled_program.h"

#include "bundled_program_fields_generated.h"
#include "core/base/findings.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/program.h"
#include "formats/bpte/bundled_program_schema.h"
#include "formats/bpte/case_check.h"
#include "formats/bpte/case_layout.h"
#include "formats/bpte/segmented_bundle.h"
#include "formats/pte/load_verify.h"

namespace etstream {
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
