// SPDX-License-Identifier: BSD-3-Clause
//
// etstream bundle MODEL.pte --cases CASES.json -o OUT.bpte
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/print.h"
#include "base/text.h"
#include "base/try.h"
#include "cli/bundle_options.h"
#include "cli/commands.h"
#include "cli/metadata_options.h"
#include "cli/output.h"
#include "cli/plan_report.h"
#include "cli/writer_options.h"
#include "etstream/bundled_program.h"
#include "etstream/case_files.h"
#include "etstream/program_changes.h"
#include "report/json_report.h"

namespace etstream::cli {
namespace {

struct BundleArguments : BundleOptions {
  std::string model;
  std::string cases;
  std::uint32_t program_alignment = BundledProgramOptions().program_alignment;
  bool unchecked = false;
  WriterOptions writer;
  std::vector<std::string> metadata;
};

std::size_t count_cases(const BundledProgram& bundle) {
  std::size_t n = 0;
  for (const auto& suite : bundle.method_test_suites) n += suite.test_cases.size();
  return n;
}

void report_written(const BundleArguments& arguments, const BundledProgram& bundle, const FilePlan& plan) {
  if (arguments.json) {
    print_json({{"output", arguments.output},
                {"size", plan.size},
                {"program_size", bundle.program.size()},
                {"suites", bundle.method_test_suites.size()},
                {"cases", count_cases(bundle)}});
  } else if (!is_standard_output(arguments.output)) {
    say("%s: %s, %s, %s\n", arguments.output.c_str(), readable_size(plan.size).c_str(),
        counted(bundle.method_test_suites.size(), "test suite").c_str(),
        counted(count_cases(bundle), "test case").c_str());
  }
}

Result<void> check_command(const BundleArguments& arguments, const BundledProgram& bundle) {
  ETSTREAM_ASSIGN(const Findings findings, check(bundle));
  print(findings);
  if (findings.ok()) return {};
  return make_error(ErrorCode::kInvalidArgument, "{}: {}; --unchecked bundles all the same", arguments.cases,
                    counted(findings.errors.size(), "error"));
}

/// The program's bytes, with the metadata that it is to have.
Result<ByteSource> read_program(const BundleArguments& arguments) {
  ETSTREAM_ASSIGN(ByteSource file, ByteSource::file(arguments.model));
  if (arguments.metadata.empty()) return file;
  ETSTREAM_ASSIGN(auto metadata, read_metadata_options(arguments.metadata));
  ETSTREAM_ASSIGN(const ProgramFile program, ProgramFile::open(std::move(file)));
  Findings findings;
  ETSTREAM_TRY(program.verify(findings));
  ETSTREAM_TRY(require_sound(arguments.model, findings));
  ETSTREAM_ASSIGN(const ProgramPlan planned, plan(program, ProgramChanges{.metadata = std::move(metadata)}));
  return source_of(planned.program);
}

Result<void> bundle_command(const BundleArguments& arguments) {
  BundledProgram bundle;
  ETSTREAM_ASSIGN(bundle.program, read_program(arguments));
  ETSTREAM_ASSIGN(bundle.method_test_suites, read_test_cases(arguments.cases));
  if (!arguments.unchecked) ETSTREAM_TRY(check_command(arguments, bundle));
  ETSTREAM_ASSIGN(const FilePlan plan, plan(bundle, {.format = arguments.bundle_format(),
                                                     .hash = !arguments.no_hash,
                                                     .program_alignment = arguments.program_alignment,
                                                     .unchecked = true,
                                                     .writer = arguments.writer.version()}));
  if (arguments.dry_run) return show_plan(plan, arguments);
  ETSTREAM_TRY(write_output(plan, arguments.output, arguments));
  report_written(arguments, bundle, plan);
  return {};
}

}  // namespace

void add_bundle_command(CLI::App& app, Run& run) {
  CLI::App* command = app.add_subcommand("bundle", "Bundle a program with test cases (.bpte)");
  auto arguments = std::make_shared<BundleArguments>();
  command->add_option("MODEL", arguments->model, "The program, a .pte file")->required();
  command->add_option("--cases", arguments->cases, "The test cases, a JSON file")
      ->type_name("CASES.json")
      ->required();
  add_bundle_path(*command, *arguments);
  command
      ->add_option("--program-alignment", arguments->program_alignment,
                   "Of the program in the bundle, a power of two up to 65536; 32 gives ExecuTorch's bytes")
      ->type_name(kNumber)
      ->capture_default_str();
  add_format(*command, "--format", *arguments)->capture_default_str();
  add_hash_flag(*command, *arguments);
  command->add_flag("--unchecked", arguments->unchecked,
                    "Also bundle what ExecuTorch's reader can't be trusted with");
  add_metadata_option(*command, arguments->metadata);
  add_as_of(*command, arguments->writer.as_of);
  add_flatbuffers(*command, arguments->writer.vtables);
  add_output_flags(*command, *arguments);
  command->callback([arguments, command, &run] {
    check_output(*command, *arguments);
    run = [arguments] { return bundle_command(*arguments); };
  });
}

}  // namespace etstream::cli
