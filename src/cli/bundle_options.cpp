// SPDX-License-Identifier: BSD-3-Clause
#include "cli/bundle_options.h"

#include "cli/output.h"

namespace etstream::cli {

void add_bundle_path(CLI::App& command, BundleOptions& options) {
  command.add_option("-o,--output", options.output, "The bundle; - is standard output")
      ->type_name("OUT.bpte");
}

CLI::Option* add_format(CLI::App& command, const std::string& name, BundleOptions& options) {
  // The check's own description would follow the type's name.
  return command
      .add_option(name, options.format,
                  "bp08, which ExecuTorch reads and which ends at 2 GiB, or segmented, of any size")
      ->type_name(CLI::detail::join(kFormats, "|"))
      ->check(CLI::IsMember(kFormats).description(""));
}

void add_hash_flag(CLI::App& command, BundleOptions& options) {
  command.add_flag("--no-hash", options.no_hash,
                   "Leave the hashes out of a segmented bundle, by which damage is found");
}

void add_output_flags(CLI::App& command, BundleOptions& options) {
  command.add_flag("--dry-run", options.dry_run, "Show the plan of the file and write nothing");
  command.add_flag("--no-sync", options.no_sync, "Leave the file to the page cache, as cp does");
  command.add_flag("--json", options.json, "Report as JSON on standard output");
}

void check_output(const CLI::App& command, const BundleOptions& options) {
  if (command.get_option("--output")->empty() && !options.dry_run) throw CLI::RequiredError("--output");
  if (is_standard_output(options.output) && options.json && !options.dry_run) {
    throw CLI::ValidationError("--json", "and the bundle can't both go to standard output");
  }
}

}  // namespace etstream::cli
