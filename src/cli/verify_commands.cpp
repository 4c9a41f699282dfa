// SPDX-License-Identifier: BSD-3-Clause
//
// etstream verify FILE [WEIGHTS...] [--run [--python PYTHON] [--seed N] [--run-seconds N] [--run-memory SIZE]
//     [--atol X] [--rtol X]]
// etstream compare BUNDLE --outputs DIR [--method NAME] [--case N] [--atol X] [--rtol X]
// etstream diff A B [--ignore-layout] [--atol X] [--rtol X] [--names NAMES.json]
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command_line.h"
#include "cli/output.h"
#include "cli/words.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/diff.h"
#include "etstream/verify.h"
#include "present/print.h"
#include "present/reports.h"

namespace etstream::cli {
namespace {

/// The most findings that are printed; --json has all.
constexpr std::size_t kMostFindings = 9;

struct VerifyArguments {
  std::string file;
  std::vector<std::string> weights;
  bool partial = false;
  bool run = false;
  MethodRunOptions runs;
  std::optional<double> atol;
  std::optional<double> rtol;
  bool json = false;
};

Result<void> verify_command(const VerifyArguments& arguments) {
  ETSTREAM_ASSIGN(FileFindings findings,
                  verify(arguments.file, arguments.weights, {.partial = arguments.partial}));
  if (!arguments.json) print(findings, kMostFindings);
  if (arguments.run) {
    MethodRunOptions options = arguments.runs;
    options.tolerance = tolerance_of(arguments.atol, arguments.rtol);
    ETSTREAM_TRY(add_runs(arguments.file, options, findings));
  }
  const auto& external_keys = findings.external_keys;
  if (arguments.json) {
    Json report = {{"file", arguments.file}, {"ok", findings.ok()}};
    report.update(findings_to_json(findings, option_words));
    report.update({{"files", unless_empty(findings.files)},
                   {"tensor_data", unless_empty(findings.weights)},
                   {"external_keys", external_keys}});
    if (external_keys) {
      report.update(ETSTREAM_MEMBERS(findings.unknown_operators, findings.unknown_operator_names));
    }
    if (arguments.run) report.add("runs", runs_to_json(findings.runs));
    print_json(report);
  } else {
    print_runs(arguments.file, findings.runs, option_words, "--atol");
  }
  const std::string warnings =
      findings.warnings.empty() ? "" : text(", {}", counted(findings.warnings.size(), "warning"));
  if (!findings.ok()) {
    return error_in(ErrorCode::kCorrupt, arguments.file, "{}{}{}", counted(findings.errors.size(), "error"),
                    warnings, arguments.run && findings.runs.empty() ? ", so that it was not run" : "");
  }
  if (arguments.json) return {};
  std::string needed;
  if (findings.weights.empty() && external_keys && !external_keys->empty()) {
    needed = text(", with {} to come from a tensor data file", counted(external_keys->size(), "key"));
  }
  std::string unknown;
  if (findings.unknown_operators > 0) {
    unknown =
        text(", {} that etstream does not know ({}): the runtime needs a kernel registered for each",
             counted(findings.unknown_operators, "operator"), names_text(findings.unknown_operator_names));
  }
  const std::string files =
      findings.files.empty() ? "" : text(", {}", counted(findings.files.size(), "file"));
  say("{}: ok{}{}{}{}\n", arguments.file, files, needed, unknown, warnings);
  return {};
}

void add_run_options(CLI::App& command, VerifyArguments& arguments) {
  const Option run = add_flag(
      command, "--run", arguments.run,
      "Run each method on the ExecuTorch runtime of Python, in a process of its own, and report how it "
      "ended: on the bundle's test cases, or on zeros, ones and random numbers");
  MethodRunOptions& options = arguments.runs;
  add_option(command, "--python", "PYTHON", options.python,
             "Run methods with this Python, which has ExecuTorch (default: python3)")
      .needs(run);
  add_number(command, "--seed", options.seed, "Make random inputs from this seed (default: 0)").needs(run);
  add_number(command, "--run-seconds", options.seconds, "End a run after this many seconds (default: 60)")
      .needs(run);
  add_size(command, "--run-memory", options.memory,
           "Limit a run to this much memory besides that of ExecuTorch when it is loaded (default: 4G)")
      .needs(run);
  for (const Option option : add_tolerances(command, arguments.atol, arguments.rtol)) {
    option.needs(run);
  }
}

}  // namespace

void add_verify_command(CLI::App& app, ChosenCommand& chosen) {
  const auto [command, arguments] = add_subcommand<VerifyArguments>(
      app, chosen, "verify",
      "Check programs, bundles, tensor data (.pte, .bpte, .ptd) and checkpoints, and that they fit",
      verify_command);
  add_argument(command, "FILE", arguments.file,
               "The file to check; or a folder with a checkpoint, or its index. A program that passes "
               "does not make "
               "ExecuTorch 1.5.1 read or write outside of its memory; --run tells whether it runs")
      .required();
  add_argument(command, "WEIGHTS", arguments.weights,
               "Tensor data files that the program is to run with, which are checked for what it needs");
  add_partial_option(command, arguments.partial);
  add_base_option(command);
  add_run_options(command, arguments);
  add_json(command, arguments.json);
}

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
    Json report = {{"file", arguments.bundle}, {"outputs", arguments.outputs}, {"ok", found.as_expected()}};
    report.update(findings_to_json(found, option_words));
    report.add("runs", runs_to_json(found.runs));
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
      compare_command);
  add_footer(
      command,
      "The files are out-N.bin, as executor_runner and Arm's runner name output N, with any word for out; "
      "output_N.bin; N.bin; output_CASE_N.bin; or METHOD_CASE_output_N.bin, as extract names the "
      "expected ones. Names without CASE may be in a folder CASE for each test case. Instead of .bin, raw "
      "bytes may have .raw; arrays of NumPy have .npy. Numbers count from 0.\n"
      "The exit code is 0 if all outputs are as expected, 1 if some differ, and 2 after an error, or if an "
      "output could not be compared.");
  add_argument(command, "BUNDLE", arguments.bundle, "A bundle (.bpte)").required();
  add_option(command, "--outputs", kFolder, arguments.outputs, "The folder of the files, one for each output")
      .required();
  add_option(command, "--method", kName, arguments.options.method,
             "Compare only the test cases of this method");
  add_number(command, "--case", arguments.options.test_case,
             "Compare only this test case, counted from 0 over all suites of its method");
  add_tolerances(command, arguments.atol, arguments.rtol);
  add_json(command, arguments.json);
}

namespace {

/// The most differences that are printed; --json has all.
constexpr std::size_t kMostDifferences = 60;

constexpr int kDifferent = 1;
constexpr int kTrouble = 2;

struct DiffArguments {
  std::string a;
  std::string b;
  bool ignore_layout = false;
  std::optional<double> atol;
  std::optional<double> rtol;
  std::vector<std::string> names;
  bool partial = false;
  bool json = false;
};

std::string_view summary_of(const FileDiff& found) {
  if (found.same_content) return "same content, other layout";
  return found.same_within_tolerance ? "same content within the tolerance" : "other content";
}

/// Describes a difference: "4 of 6 elements equal (66.6%), largest difference 0.5, mean 0.1". The share is
/// rounded down, so that 100% means all.
std::string elements_text(const ElementDifference& found, bool is_tolerated) {
  const double share =
      found.elements == 0 ? 1 : static_cast<double>(found.equal) / static_cast<double>(found.elements);
  return text("{} of {} equal ({:.1f}%), largest difference {:.3g}, mean {:.3g}{}{}", found.equal,
              counted(found.elements, "element"), std::floor(1000 * share) / 10, found.largest, found.mean,
              found.not_finite == 0 ? "" : text(", {} with NaN or infinity", found.not_finite),
              is_tolerated ? "; within the tolerance" : "");
}

/// Returns whether the files count as the same: nothing differs, except elements within the tolerance and
/// what is ignored.
bool counts_as_same(const FileDiff& found, bool ignore_layout) {
  if (found.same_bytes || (ignore_layout && found.same_within_tolerance)) return true;
  return found.same_within_tolerance && !found.same_content &&
         std::ranges::all_of(found.differences,
                             [](const DiffEntry& one) { return one.kind == DiffEntry::Kind::kTolerated; });
}

void print_differences(const FileDiff& found) {
  if (found.same_bytes) return say("same bytes\n");
  say("{}\n", summary_of(found));
  const std::size_t rows = std::min(kMostDifferences, found.differences.size());
  for (std::size_t i = 0; i < rows; ++i) {
    const DiffEntry& one = found.differences[i];
    say("{}\n  a: {}\n  b: {}\n", one.subject, one.in_a.empty() ? "-" : one.in_a,
        one.in_b.empty() ? "-" : one.in_b);
    if (one.elements) say("  {}\n", elements_text(*one.elements, one.kind == DiffEntry::Kind::kTolerated));
  }
  if (rows < found.differences.size()) {
    say("... and {}; --json lists all\n", counted(found.differences.size() - rows, "more difference"));
  }
}

Result<void> diff_command(const DiffArguments& arguments, ChosenCommand& chosen) {
  chosen.failed = kTrouble;
  DiffOptions options;
  if (arguments.atol || arguments.rtol) {
    options.tolerance =
        Tolerance{.absolute = arguments.atol.value_or(0), .relative = arguments.rtol.value_or(0)};
  }
  ETSTREAM_ASSIGN(options.names_a, read_names(arguments.names));
  options.names_b = options.names_a;
  ETSTREAM_ASSIGN(FileDiff found, diff(arguments.a, arguments.b, options, {.partial = arguments.partial}));
  if (arguments.ignore_layout) ignore_layout(found);
  if (arguments.json) {
    print_json(differences_to_json(arguments.a, arguments.b, found));
  } else {
    print_differences(found);
  }
  if (!counts_as_same(found, arguments.ignore_layout)) chosen.done = kDifferent;
  return {};
}

}  // namespace

void add_diff_command(CLI::App& app, ChosenCommand& chosen) {
  const auto [command, arguments] = add_subcommand<DiffArguments>(
      app, chosen, "diff", "Show the differences between two files of one kind", diff_command);
  add_footer(command, "The exit code is 0 if both are the same, 1 if they differ, and 2 after an error.");
  add_argument(command, "A", arguments.a,
               "A program, a bundle, tensor data (.pte, .bpte, .ptd), or a checkpoint: a file, an index or a "
               "folder")
      .required();
  add_argument(command, "B", arguments.b, "Another of the same kind").required();
  add_flag(command, "--ignore-layout", arguments.ignore_layout,
           "Treat files as the same if they have the same content in other places");
  add_tolerance(command, "--atol", arguments.atol,
                "Treat elements of weights as equal if they differ by at most X, integers too");
  add_tolerance(command, "--rtol", arguments.rtol,
                "Treat floating-point elements as equal if they differ by at most X times that of A, in "
                "addition to --atol");
  add_names_option(command, arguments.names);
  add_partial_option(command, arguments.partial);
  add_base_option(command);
  add_json(command, arguments.json);
}

}  // namespace etstream::cli
