// SPDX-License-Identifier: BSD-3-Clause
//
// etstream verify FILE [WEIGHTS...]
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/text.h"
#include "base/try.h"
#include "cli/commands.h"
#include "cli/option_names.h"
#include "cli/output.h"
#include "etstream/bundled_program_file.h"
#include "etstream/program_weights.h"
#include "etstream/verify.h"
#include "report/json_report.h"

namespace etstream::cli {
namespace {

struct VerifyArguments {
  std::string file;
  std::vector<std::string> weights;
  bool json = false;
};

/// Those that the program in `file` asks for and does not have; nothing where that can't be told, or is none.
std::optional<std::vector<std::string>> keys_from_outside_of(const ByteSource& file) {
  const auto program = open_program(file);
  if (!program) return {};
  auto keys = keys_from_outside(*program);
  if (!keys) return {};
  return std::move(keys).value();
}

Result<void> verify_command(const VerifyArguments& arguments) {
  ETSTREAM_ASSIGN(const ByteSource file, ByteSource::file(arguments.file));
  std::vector<ByteSource> weights;
  for (const std::string& path : arguments.weights) {
    ETSTREAM_ASSIGN(weights.emplace_back(), ByteSource::file(path));
  }
  ETSTREAM_ASSIGN(const Findings findings, verify(file, weights));
  const auto outside = keys_from_outside_of(file);
  if (arguments.json) {
    const Findings worded = with_option_names(findings);
    nlohmann::ordered_json report = {{"file", arguments.file},
                                     {"ok", worded.ok()},
                                     {"errors", worded.errors},
                                     {"warnings", worded.warnings}};
    if (!weights.empty()) report["weights"] = arguments.weights;
    if (outside) report["keys_from_outside"] = *outside;
    print_json(report);
  } else {
    print(findings);
  }
  const std::string warnings =
      findings.warnings.empty() ? "" : text(", ", counted(findings.warnings.size(), "warning"));
  if (!findings.ok()) {
    return make_error(ErrorCode::kCorrupt, arguments.file, ": ", counted(findings.errors.size(), "error"),
                      warnings);
  }
  if (arguments.json) return {};
  std::string needed;
  if (weights.empty() && outside && !outside->empty()) {
    needed = text(", with ", counted(outside->size(), "key"), " to come from a file of named data");
  }
  std::printf("%s: ok%s%s\n", arguments.file.c_str(), needed.c_str(), warnings.c_str());
  return {};
}

}  // namespace

void add_verify_command(CLI::App& app, Run& run) {
  CLI::App* command = app.add_subcommand(
      "verify", "Check programs, bundles, named data (.pte, .bpte, .ptd) and checkpoints, and that they fit");
  auto arguments = std::make_shared<VerifyArguments>();
  command->add_option("FILE", arguments->file, "The file to check")->required();
  command->add_option("WEIGHTS", arguments->weights,
                      "Files of named data that the program is to run with: whether it gets what it needs");
  command->add_flag("--json", arguments->json, "Report as JSON on standard output");
  command->callback([arguments, &run] { run = [arguments] { return verify_command(*arguments); }; });
}

}  // namespace etstream::cli
