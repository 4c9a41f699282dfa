// SPDX-License-Identifier: BSD-3-Clause
#include "cli/output_options.h"

#include "cli/commands.h"
#include "cli/output.h"

namespace etstream::cli {

namespace {

CLI::Option* add_limit(CLI::App& command, const std::string& name, std::optional<std::uint64_t>& limit,
                       const std::string& what) {
  return command.add_option(name, limit, what)
      ->transform(CLI::AsSizeValue(false).description(""))
      ->type_name(kSize);
}

}  // namespace

std::array<CLI::Option*, 2> add_limits(CLI::App& command, WriteOptions& options) {
  return {add_limit(command, "--max-memory", options.max_memory,
                    "Write nothing, and exit with 1, if the plan says that this is not enough memory: 16M"),
          add_limit(command, "--max-disk", options.max_disk,
                    "Write nothing, and exit with 1, if the files come to more than this: 2G")};
}

void add_write_options(CLI::App& command, WriteOptions& options) {
  add_limits(command, options);
  command.add_flag("--no-sync", options.no_sync, "Leave what is written to the page cache, as cp does");
}

void add_output_path(CLI::App& command, OutputOptions& options, const std::string& what,
                     const std::string& example) {
  command.add_option("-o,--output", options.output, what + "; - is standard output")->type_name(example);
}

void add_output_flags(CLI::App& command, OutputOptions& options) {
  command.add_flag("--dry-run", options.dry_run, "Show the plan of the file and write nothing");
  add_write_options(command, options);
  command.add_flag("--json", options.json, "Report as JSON on standard output");
}

void check_output(const CLI::App& command, const OutputOptions& options) {
  if (command.get_option("--output")->empty() && !options.dry_run) throw CLI::RequiredError("--output");
  if (is_standard_output(options.output) && options.json && !options.dry_run) {
    throw CLI::ValidationError("--json", "and the output can't both go to standard output");
  }
}

}  // namespace etstream::cli
