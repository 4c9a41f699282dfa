// SPDX-License-Identifier: BSD-3-Clause
//
// etstream convert IN.bpte -o OUT.bpte --to bp08|segmented
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/text.h"
#include "base/try.h"
#include "cli/commands.h"
#include "cli/json_report.h"
#include "cli/output.h"
#include "cli/plan_report.h"
#include "etstream/bundled_program_file.h"

namespace etstream::cli {
namespace {

struct Arguments {
  std::string file;
  std::string output;
  std::string format;
  bool no_hash = false;
  bool dry_run = false;
  bool no_sync = false;
  bool json = false;
};

Result<void> convert_command(const Arguments& arguments) {
  ETSTREAM_ASSIGN(const ByteSource file, ByteSource::file(arguments.file));
  ETSTREAM_ASSIGN(const auto bundle, BundledProgramFile::open(file));
  const BundleFormat to =
      arguments.format == kSegmentedFormat ? BundleFormat::kSegmented : BundleFormat::kBp08;
  ETSTREAM_ASSIGN(const Layout layout, bundle.plan_as(to, !arguments.no_hash));
  if (arguments.dry_run) {
    arguments.json ? print_json(to_json(layout)) : print(layout);
    return {};
  }
  ETSTREAM_TRY(write_output(layout, arguments.output, !arguments.no_sync, {arguments.file}));
  if (arguments.json) {
    print_json({{"output", arguments.output}, {"format", arguments.format}, {"size", layout.size}});
  } else if (!is_standard_output(arguments.output)) {
    std::printf("%s: %s, %s\n", arguments.output.c_str(), arguments.format.c_str(),
                readable_size(layout.size).c_str());
  }
  return {};
}

}  // namespace

void add_convert_command(CLI::App& app, Run& run) {
  CLI::App* command = app.add_subcommand("convert", "Convert a bundle between formats, without loss");
  auto arguments = std::make_shared<Arguments>();
  command->add_option("FILE", arguments->file, "A bundle (.bpte)")->required();
  auto* output = command->add_option("-o,--output", arguments->output, "The bundle; - is standard output")
                     ->type_name("OUT.bpte");
  command->add_option("--to", arguments->format, kFormatHelp)->check(CLI::IsMember(kFormats))->required();
  command->add_flag("--no-hash", arguments->no_hash,
                    "Leave the hashes out of a segmented bundle, by which damage is found");
  auto* dry_run =
      command->add_flag("--dry-run", arguments->dry_run, "Show the plan of the file and write nothing");
  command->add_flag("--no-sync", arguments->no_sync, "Leave the file to the page cache, as cp does");
  auto* json = command->add_flag("--json", arguments->json, "Report as JSON on standard output");
  command->callback([arguments, output, dry_run, json, &run] {
    if (output->empty() && dry_run->empty()) throw CLI::RequiredError("--output");
    if (is_standard_output(arguments->output) && !json->empty() && dry_run->empty()) {
      throw CLI::ValidationError("--json", "and the bundle can't both go to standard output");
    }
    run = [arguments] { return convert_command(*arguments); };
  });
}

}  // namespace etstream::cli
