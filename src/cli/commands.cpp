// SPDX-License-Identifier: BSD-3-Clause
#include "cli/commands.h"

#include "etstream/version.h"

namespace etstream::cli {

std::unique_ptr<CLI::App> make_command_line(Run& run) {
  auto app = std::make_unique<CLI::App>(
      "Writes ExecuTorch's files in one pass, with memory that does not grow with them.", "etstream");
  app->set_version_flag("--version", "etstream " ETSTREAM_VERSION);
  app->require_subcommand(0, 1);
  add_bundle_command(*app, run);
  add_compile_command(*app, run);
  add_convert_command(*app, run);
  add_decompile_command(*app, run);
  add_diff_command(*app, run);
  add_extract_command(*app, run);
  add_fat_command(*app, run);
  add_help_command(*app, run);
  add_inspect_command(*app, run);
#if defined(ETSTREAM_HEAP_LIBRARY)
  add_profile_command(*app, run);
#endif
  add_ptd_command(*app, run);
  add_pte_command(*app, run);
  add_ptn_command(*app, run);
#if defined(ETSTREAM_HEAP_LIBRARY)
  add_run_command(*app, run);
#endif
  add_share_command(*app, run);
  add_verify_command(*app, run);
  return app;
}

}  // namespace etstream::cli
