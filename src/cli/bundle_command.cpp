// SPDX-License-Identifier: BSD-3-Clause
//
// etstream bundle MODEL.pte --cases CASES.json -o OUT.bpte
#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/text.h"
#include "base/try.h"
#include "cli/commands.h"
#include "cli/plan_report.h"
#include "cli/progress_bar.h"
#include "cli/terminal.h"
#include "etstream/bundled_program.h"
#include "etstream/test_cases.h"

namespace etstream::cli {
namespace {

constexpr std::string_view kToStandardOutput = "-";

struct Arguments {
  std::string model;
  std::string cases;
  std::string output;
  BundledProgramOptions bundle;
  bool dry_run = false;
  bool no_sync = false;
  bool json = false;
};

Result<void> refuse_own_input(const Arguments& arguments) {
  for (const std::string& input : {arguments.model, arguments.cases}) {
    std::error_code error;
    if (std::filesystem::equivalent(input, arguments.output, error)) {
      return make_error(ErrorCode::kInvalidArgument, "the output ", quote(arguments.output),
                        " is the input ", quote(input), "; give the bundle another name");
    }
  }
  return {};
}

Result<std::unique_ptr<Sink>> open_output(const Arguments& arguments) {
  if (arguments.output == kToStandardOutput) {
    if (standard_output_is_a_terminal()) {
      return Error{ErrorCode::kInvalidArgument,
                   "a bundle is binary and not for a terminal; send it to a file or into a pipe"};
    }
    return open_descriptor_sink(kStandardOutput, "standard output");
  }
  ETSTREAM_TRY(refuse_own_input(arguments));
  catch_interrupts();
  return open_file_sink(arguments.output, {.sync = !arguments.no_sync});
}

std::size_t count_cases(const BundledProgram& bundle) {
  std::size_t n = 0;
  for (const auto& suite : bundle.method_test_suites) n += suite.test_cases.size();
  return n;
}

void report_written(const Arguments& arguments, const BundledProgram& bundle, const Layout& layout) {
  if (arguments.json) {
    const nlohmann::ordered_json report = {{"output", arguments.output},
                                           {"size", layout.size},
                                           {"program_size", bundle.program.size()},
                                           {"suites", bundle.method_test_suites.size()},
                                           {"cases", count_cases(bundle)}};
    std::printf("%s\n", report.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  } else if (arguments.output != kToStandardOutput) {
    std::printf("%s: %s, %s, %s\n", arguments.output.c_str(), readable_size(layout.size).c_str(),
                counted(bundle.method_test_suites.size(), "test suite").c_str(),
                counted(count_cases(bundle), "test case").c_str());
  }
}

void report_plan(const Arguments& arguments, const Layout& layout) {
  if (arguments.json) {
    const auto report = to_json(layout);
    std::printf("%s\n", report.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  } else {
    print(layout);
  }
}

Result<void> bundle(const Arguments& arguments) {
  BundledProgram bundle;
  ETSTREAM_ASSIGN(bundle.program, ByteSource::file(arguments.model));
  ETSTREAM_ASSIGN(bundle.method_test_suites, read_test_cases(arguments.cases));
  ETSTREAM_ASSIGN(const Layout layout, plan(bundle, arguments.bundle));
  if (arguments.dry_run) {
    report_plan(arguments, layout);
    return {};
  }
  ETSTREAM_ASSIGN(const auto sink, open_output(arguments));
  {
    ProgressBar bar;
    ETSTREAM_TRY(write(layout, *sink, [&](std::uint64_t done, std::uint64_t total) {
      bar.show(done, total);
      return !interrupted();
    }));
  }
  report_written(arguments, bundle, layout);
  return {};
}

}  // namespace

void add_bundle_command(CLI::App& app, Run& run) {
  CLI::App* command = app.add_subcommand("bundle", "Bundle a program with test cases (.bpte)");
  auto arguments = std::make_shared<Arguments>();
  command->add_option("MODEL", arguments->model, "The program, a .pte file")->required();
  command->add_option("--cases", arguments->cases, "The test cases, a JSON file")
      ->type_name("CASES.json")
      ->required();
  auto* output = command->add_option("-o,--output", arguments->output, "The bundle; - is standard output")
                     ->type_name("OUT.bpte");
  command->add_option("--program-alignment", arguments->bundle.program_alignment,
                      "Of the program in the bundle, a power of two up to 65536; 32 gives ExecuTorch's bytes")
      ->type_name("N")
      ->capture_default_str();
  command->add_flag("--unchecked", arguments->bundle.unchecked,
                    "Also bundle what ExecuTorch's reader can't be trusted with");
  auto* dry_run =
      command->add_flag("--dry-run", arguments->dry_run, "Show the plan of the file and write nothing");
  command->add_flag("--no-sync", arguments->no_sync, "Leave the file to the page cache, as cp does");
  auto* json = command->add_flag("--json", arguments->json, "Report as JSON on standard output");
  command->callback([arguments, output, dry_run, json, &run] {
    if (output->empty() && dry_run->empty()) throw CLI::RequiredError("--output");
    if (arguments->output == kToStandardOutput && !json->empty() && dry_run->empty()) {
      throw CLI::ValidationError("--json", "and the bundle can't both go to standard output");
    }
    run = [arguments] { return bundle(*arguments); };
  });
}

}  // namespace etstream::cli
