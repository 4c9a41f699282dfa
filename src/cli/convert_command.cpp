// SPDX-License-Identifier: BSD-3-Clause
//
// etstream convert IN.bpte -o OUT.bpte --to bp08|segmented
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/print.h"
#include "base/text.h"
#include "base/try.h"
#include "cli/bundle_options.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/plan_report.h"
#include "etstream/bundled_program_file.h"
#include "report/json_report.h"

namespace etstream::cli {
namespace {

struct ConvertArguments : BundleOptions {
  std::string file;
};

Result<void> convert_command(const ConvertArguments& arguments) {
  ETSTREAM_ASSIGN(const ByteSource file, ByteSource::file(arguments.file));
  ETSTREAM_ASSIGN(const auto bundle, BundledProgramFile::open(file));
  ETSTREAM_ASSIGN(const FilePlan plan, bundle.plan_as(arguments.bundle_format(), !arguments.no_hash));
  if (arguments.dry_run) return show_plan(plan, arguments);
  ETSTREAM_TRY(write_output(plan, arguments.output, arguments));
  if (arguments.json) {
    print_json({{"output", arguments.output}, {"format", arguments.format}, {"size", plan.size}});
  } else if (!is_standard_output(arguments.output)) {
    say("%s: %s, %s\n", arguments.output.c_str(), arguments.format.c_str(), readable_size(plan.size).c_str());
  }
  return {};
}

}  // namespace

void add_convert_command(CLI::App& app, Run& run) {
  CLI::App* command = app.add_subcommand("convert", "Convert a bundle between formats, without loss");
  auto arguments = std::make_shared<ConvertArguments>();
  command->add_option("FILE", arguments->file, "A bundle (.bpte)")->required();
  add_bundle_path(*command, *arguments);
  add_format(*command, "--to", *arguments)->required();
  add_hash_flag(*command, *arguments);
  add_output_flags(*command, *arguments);
  command->callback([arguments, command, &run] {
    check_output(*command, *arguments);
    run = [arguments] { return convert_command(*arguments); };
  });
}

}  // namespace etstream::cli
