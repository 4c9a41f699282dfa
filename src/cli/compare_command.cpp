// SPDX-License-Identifier: BSD-3-Clause
//
// etstream compare BUNDLE --outputs DIR [--method NAME] [--case N] [--atol X] [--rtol X]
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cli/commands.h"
#include "cli/option_words.h"
#include "cli/options.h"
#include "cli/output.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/output_files.h"
#include "present/print.h"
#include "present/reports.h"

namespace etstream::cli {
namespace {

constexpr int kOtherOutputs = 1;
constexpr int kCannotCompare = 2;

struct CompareArguments {
  std::string bundle;
  std::string outputs;
  OutputComparisonOptions options;
  std::optional<double> atol;
  std::optional<double> rtol;
  bool json = false;
};

Result<void> compare_command(const CompareArguments& arguments, ChosenCommand& chosen) {
  chosen.failed = kCannotCompare;
  OutputComparisonOptions options = arguments.options;
  options.tolerance = tolerance_of(arguments.atol, arguments.rtol);
  ETSTREAM_ASSIGN(const ByteSource bundle, ByteSource::file(arguments.bundle));
  ETSTREAM_ASSIGN(const OutputFindings found, compare_outputs(bundle, arguments.outputs, options));
  if (arguments.json) {
    nlohmann::ordered_json report = {
        {"file", arguments.bundle}, {"outputs", arguments.outputs}, {"ok", found.as_expected()}};
    report.update(findings_to_json(found, option_words));
    report["runs"] = runs_to_json(found.runs);
    print_json(report);
  } else {
    print(found);
    print_runs(arguments.bundle, found.runs, option_words, "--atol");
  }
  const std::string problems =
      found.problems() == 0 ? "" : text("{} not compared", counted(found.problems(), "output"));
  const std::string errors = found.ok() ? "" : counted(found.errors.size(), "error");
  if (!problems.empty() || !errors.empty()) {
    return error_in(ErrorCode::kInvalidArgument, arguments.outputs, "{}{}{}", problems,
                    problems.empty() || errors.empty() ? "" : ", ", errors);
  }
  if (!found.as_expected()) chosen.done = kOtherOutputs;
  return {};
}

}  // namespace

void add_compare_command(CLI::App& app, ChosenCommand& chosen) {
  const auto [command, arguments] = add_subcommand<CompareArguments>(
      app, chosen, "compare",
      "Compare outputs that a device has written to files with those that the test cases of a bundle expect",
      [&chosen](const CompareArguments& given) { return compare_command(given, chosen); });
  command.footer(
      "The files are out-N.bin, as executor_runner and Arm's runner name output N, with any word for out; "
      "output_N.bin; N.bin; output_CASE_N.bin; or METHOD_CASE_output_N.bin, as extract names the "
      "expected ones. Names without CASE may be in a folder CASE for each test case. Instead of .bin, raw "
      "bytes may have .raw; arrays of NumPy have .npy. Numbers count from 0.\n"
      "The exit code is 0 if all outputs are as expected, 1 if some differ, and 2 after an error, or if an "
      "output could not be compared.");
  command.add_option("BUNDLE", arguments.bundle, "A bundle (.bpte)")->required();
  add_option(command, "--outputs", kFolder, arguments.outputs, "The folder of the files, one for each output")
      ->required();
  add_option(command, "--method", kName, arguments.options.method,
             "Compare only the test cases of this method");
  add_number(command, "--case", arguments.options.test_case,
             "Compare only this test case, counted from 0 over all suites of its method");
  add_tolerances(command, arguments.atol, arguments.rtol);
  add_json(command, arguments.json);
}

}  // namespace etstream::cli
