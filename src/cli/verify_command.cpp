// SPDX-License-Identifier: BSD-3-Clause
//
// etstream verify FILE [WEIGHTS...] [--run [--python PYTHON] [--seed N] [--run-seconds N] [--run-memory SIZE]
//     [--atol X] [--rtol X]]
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/option_words.h"
#include "cli/options.h"
#include "cli/output.h"
#include "core/base/text.h"
#include "core/base/try.h"
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
    nlohmann::ordered_json report = {{"file", arguments.file}, {"ok", findings.ok()}};
    report.update(findings_to_json(findings, option_words));
    if (!findings.files.empty()) report["files"] = findings.files;
    if (!findings.weights.empty()) report["tensor_data"] = findings.weights;
    if (external_keys) {
      report["external_keys"] = *external_keys;
      report["unknown_operators"] = findings.unknown_operators;
      report["unknown_operator_names"] = findings.unknown_operator_names;
    }
    if (arguments.run) report["runs"] = runs_to_json(findings.runs);
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
  CLI::Option* const run = command.add_flag(
      "--run", arguments.run,
      "Run each method on the ExecuTorch runtime of Python, in a process of its own, and report how it "
      "ended: on the bundle's test cases, or on zeros, ones and random numbers");
  MethodRunOptions& options = arguments.runs;
  add_option(command, "--python", "PYTHON", options.python,
             "Run methods with this Python, which has ExecuTorch (default: python3)")
      ->needs(run);
  add_number(command, "--seed", options.seed, "Make random inputs from this seed (default: 0)")->needs(run);
  add_number(command, "--run-seconds", options.seconds, "End a run after this many seconds (default: 60)")
      ->needs(run);
  add_size(command, "--run-memory", options.memory,
           "Limit a run to this much memory besides that of ExecuTorch when it is loaded (default: 4G)")
      ->needs(run);
  for (CLI::Option* const option : add_tolerances(command, arguments.atol, arguments.rtol)) {
    option->needs(run);
  }
}

}  // namespace

void add_verify_command(CLI::App& app, ChosenCommand& chosen) {
  const auto [command, arguments] = add_subcommand<VerifyArguments>(
      app, chosen, "verify",
      "Check programs, bundles, tensor data (.pte, .bpte, .ptd) and checkpoints, and that they fit",
      verify_command);
  command
      .add_option("FILE", arguments.file,
                  "The file to check; or a folder with a checkpoint, or its index. A program that passes "
                  "does not make "
                  "ExecuTorch 1.5.1 read or write outside of its memory; --run tells whether it runs")
      ->required();
  command.add_option(
      "WEIGHTS", arguments.weights,
      "Tensor data files that the program is to run with, which are checked for what it needs");
  add_partial_option(command, arguments.partial);
  add_run_options(command, arguments);
  add_json(command, arguments.json);
}

}  // namespace etstream::cli
