// SPDX-License-Identifier: BSD-3-Clause
//
// etstream bundle MODEL.pte --cases CASES.json -o OUT.bpte [--to bp08|segmented]
// etstream convert IN.bpte -o OUT.bpte --to bp08|segmented
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "cli/output.h"
#include "core/base/findings.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/bundled_program.h"
#include "etstream/program_plan.h"

namespace etstream::cli {
namespace {

/// The formats of a bundle; BP08 comes first.
const std::vector<std::string> kFormats = {"bp08", "segmented"};

struct FormatOptions : OutputOptions {
  std::string format = kFormats.front();
  bool no_hash = false;

  [[nodiscard]] BundleFormat bundle_format() const {
    return format == kFormats.front() ? BundleFormat::kBp08 : BundleFormat::kSegmented;
  }
};

struct BundleArguments : FormatOptions {
  std::string model;
  std::string cases;
  std::uint32_t program_alignment = BundledProgramOptions().program_alignment;
  bool unchecked = false;
  std::optional<ExecutorchRelease> as_of;
  std::optional<VtableSharing> vtables;
  std::vector<std::string> metadata;
};

struct ConvertArguments : FormatOptions {
  std::string file;
};

std::size_t count_cases(const BundledProgram& bundle) {
  std::size_t n = 0;
  for (const auto& suite : bundle.method_test_suites) n += suite.test_cases.size();
  return n;
}

Result<void> check_command(const BundleArguments& arguments, const BundledProgram& bundle) {
  ETSTREAM_ASSIGN(const Findings findings, check(bundle));
  print(findings);
  if (findings.ok()) return {};
  return with_advice(
      error_in(ErrorCode::kInvalidArgument, arguments.cases, "{}", counted(findings.errors.size(), "error")),
      {"--unchecked bundles all the same"});
}

/// Returns the program's bytes, with the metadata that it is to have.
Result<ByteSource> read_program(const BundleArguments& arguments) {
  ETSTREAM_ASSIGN(ByteSource file, ByteSource::file(arguments.model));
  if (arguments.metadata.empty()) return file;
  ETSTREAM_ASSIGN(auto metadata, read_metadata_options(arguments.metadata));
  ETSTREAM_ASSIGN(const ProgramFile program, ProgramFile::open(std::move(file)));
  ETSTREAM_TRY(require_sound(program, warn));
  ETSTREAM_ASSIGN(const ProgramPlan planned, plan(program, ProgramChanges{.metadata = std::move(metadata)}));
  return source_of(planned.program);
}

Result<void> bundle_command(const BundleArguments& arguments) {
  BundledProgram bundle;
  ETSTREAM_ASSIGN(bundle.program, read_program(arguments));
  ETSTREAM_ASSIGN(bundle.method_test_suites, read_test_cases(arguments.cases));
  if (!arguments.unchecked) ETSTREAM_TRY(check_command(arguments, bundle));
  const WriterVersion latest;
  ETSTREAM_ASSIGN(const FilePlan plan,
                  plan(bundle, {.format = arguments.bundle_format(),
                                .hash = !arguments.no_hash,
                                .program_alignment = arguments.program_alignment,
                                .unchecked = true,
                                .writer = {arguments.as_of.value_or(latest.release),
                                           arguments.vtables.value_or(latest.vtables)}}));
  const std::size_t suites = bundle.method_test_suites.size();
  const std::size_t cases = count_cases(bundle);
  return show_or_write(plan, arguments,
                       text("{}, {}, {}", readable_size(plan.size), counted(suites, "test suite"),
                            counted(cases, "test case")),
                       {{"program_size", bundle.program.size()}, {"suites", suites}, {"cases", cases}});
}

Result<void> convert_command(const ConvertArguments& arguments) {
  ETSTREAM_ASSIGN(const ByteSource file, ByteSource::file(arguments.file));
  ETSTREAM_ASSIGN(const auto bundle, BundledProgramFile::open(file));
  ETSTREAM_ASSIGN(const FilePlan plan, bundle.plan_as(arguments.bundle_format(), !arguments.no_hash));
  return show_or_write(plan, arguments, text("{}, {}", arguments.format, readable_size(plan.size)),
                       {{"format", arguments.format}});
}

Option add_format(CLI::App& command, FormatOptions& options) {
  return add_choice(command, "--to", kFormats, options.format,
                    "Write bp08, which ExecuTorch reads and which holds at most 2 GiB, or segmented, which "
                    "may have any size");
}

void add_hash_flag(CLI::App& command, FormatOptions& options) {
  add_flag(command, "--no-hash", options.no_hash,
           "Write no hashes into a segmented bundle; verify can't find damaged data then");
}

void check_bundle(const CLI::App& command, const FormatOptions& options) {
  check_output(command, options);
  if (options.bundle_format() == BundleFormat::kBp08) {
    exclude_with(command, "a bp08 bundle", {"--no-hash"});
  } else {
    exclude_with(command, "a segmented bundle", {"--as-of", "--flatbuffers"});
  }
}

}  // namespace

void add_bundle_command(CLI::App& app, ChosenCommand& chosen) {
  const auto [command, arguments] = add_subcommand<BundleArguments>(
      app, chosen, "bundle", "Bundle a program with test cases (.bpte)", bundle_command, check_bundle);
  add_argument(command, "MODEL", arguments.model, "The program, a .pte file").required();
  add_option(command, "--cases", "CASES.json", arguments.cases, "The test cases, a JSON file").required();
  add_output_path(command, arguments, "The bundle", "OUT.bpte");
  add_alignment(command, "--program-alignment", arguments.program_alignment,
                "Begin the program at a multiple of this size in the bundle, a power of two up to 64K; 32 "
                "gives ExecuTorch's bytes");
  add_format(command, arguments);
  add_hash_flag(command, arguments);
  add_flag(command, "--unchecked", arguments.unchecked,
           "Bundle test cases without the check that they fit the program, which ExecuTorch's reader "
           "does not make");
  add_metadata_option(command, arguments.metadata);
  add_as_of(command, arguments.as_of);
  add_flatbuffers(command, arguments.vtables);
  add_common_options(command, arguments);
}

void add_convert_command(CLI::App& app, ChosenCommand& chosen) {
  const auto [command, arguments] = add_subcommand<ConvertArguments>(
      app, chosen, "convert", "Convert a bundle between formats, without loss", convert_command,
      check_bundle);
  add_argument(command, "FILE", arguments.file, "A bundle (.bpte)").required();
  add_output_path(command, arguments, "The bundle", "OUT.bpte");
  add_format(command, arguments).required();
  add_hash_flag(command, arguments);
  add_common_options(command, arguments);
}

}  // namespace etstream::cli
