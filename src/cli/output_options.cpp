// SPDX-License-Identifier: BSD-3-Clause
#include "cli/output_options.h"

#include "cli/output.h"

namespace etstream::cli {

void add_output_path(CLI::App& command, OutputOptions& options, const std::string& what,
                     const std::string& example) {
  command.add_option("-o,--output", options.output, what + "; - is standard output")->type_name(example);
}

void add_output_flags(CLI::App& command, OutputOptions& options) {
  command.add_flag("--dry-run", options.dry_run, "Show the plan of the file and write nothing");
  command.add_flag("--no-sync", options.no_sync, "Leave the file to the page cache, as cp does");
  command.add_flag("--json", options.json, "Report as JSON on standard output");
}

void check_output(const CLI::App& command, const OutputOptions& options) {
  if (command.get_option("--output")->empty() && !options.dry_run) throw CLI::RequiredError("--output");
  if (is_standard_output(options.output) && options.json && !options.dry_run) {
    throw CLI::ValidationError("--json", "and the output can't both go to standard output");
  }
}

}  // namespace etstream::cli
