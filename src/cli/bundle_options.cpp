// SPDX-License-Identifier: BSD-3-Clause
#include "cli/bundle_options.h"

namespace etstream::cli {

void add_bundle_path(CLI::App& command, BundleOptions& options) {
  add_output_path(command, options, "The bundle", "OUT.bpte");
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

}  // namespace etstream::cli
