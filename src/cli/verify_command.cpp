// SPDX-License-Identifier: BSD-3-Clause
//
// etstream verify FILE
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/text.h"
#include "base/try.h"
#include "cli/commands.h"
#include "cli/json_report.h"
#include "cli/output.h"
#include "etstream/verify.h"

namespace etstream::cli {
namespace {

struct VerifyArguments {
  std::string file;
  bool json = false;
};

Result<void> verify_command(const VerifyArguments& arguments) {
  ETSTREAM_ASSIGN(const ByteSource file, ByteSource::file(arguments.file));
  ETSTREAM_ASSIGN(const Findings findings, verify(file));
  if (arguments.json) {
    print_json({{"file", arguments.file},
                {"ok", findings.ok()},
                {"errors", findings.errors},
                {"warnings", findings.warnings}});
  } else {
    print(findings);
  }
  const std::string warnings =
      findings.warnings.empty() ? "" : text(", ", counted(findings.warnings.size(), "warning"));
  if (!findings.ok()) {
    return make_error(ErrorCode::kCorrupt, arguments.file, ": ", counted(findings.errors.size(), "error"),
                      warnings);
  }
  if (!arguments.json) std::printf("%s: ok%s\n", arguments.file.c_str(), warnings.c_str());
  return {};
}

}  // namespace

void add_verify_command(CLI::App& app, Run& run) {
  CLI::App* command = app.add_subcommand(
      "verify", "Check a program, a bundle, named data (.pte, .bpte, .ptd) or a safetensors file");
  auto arguments = std::make_shared<VerifyArguments>();
  command->add_option("FILE", arguments->file, "The file to check")->required();
  command->add_flag("--json", arguments->json, "Report as JSON on standard output");
  command->callback([arguments, &run] { run = [arguments] { return verify_command(*arguments); }; });
}

}  // namespace etstream::cli
