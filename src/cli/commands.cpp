// SPDX-License-Identifier: BSD-3-Clause
#include "cli/commands.h"

#include "cli/help_page.h"
#include "etstream/version.h"

namespace etstream::cli {

std::unique_ptr<CLI::App> make_command_line(ChosenCommand& chosen) {
  auto app = std::make_unique<CLI::App>(
      "Writes ExecuTorch's files in one pass, with memory that does not grow with them.", "etstream");
  app->set_version_flag("--version", "etstream " ETSTREAM_VERSION);
  app->require_subcommand(0, 1);
  app->formatter(std::make_shared<HelpPage>());  // of all subcommands too
  add_bundle_command(*app, chosen);
  add_compare_command(*app, chosen);
  add_compile_command(*app, chosen);
  add_convert_command(*app, chosen);
  add_decompile_command(*app, chosen);
  add_diff_command(*app, chosen);
  add_embed_command(*app, chosen);
  add_explain_command(*app, chosen);
  add_extract_command(*app, chosen);
  add_fat_command(*app, chosen);
  add_help_command(*app, chosen);
  add_inspect_command(*app, chosen);
  add_pack_command(*app, chosen);
#if defined(ETSTREAM_HEAP_LIBRARY)
  add_profile_command(*app, chosen);
#endif
  add_ptd_command(*app, chosen);
  add_pte_command(*app, chosen);
  add_ptn_command(*app, chosen);
  add_reweight_command(*app, chosen);
#if defined(ETSTREAM_HEAP_LIBRARY)
  add_run_command(*app, chosen);
#endif
  add_share_command(*app, chosen);
  add_unpack_command(*app, chosen);
  add_verify_command(*app, chosen);
  return app;
}

}  // namespace etstream::cli
