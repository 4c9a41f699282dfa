// SPDX-License-Identifier: BSD-3-Clause
//
// etstream_documentation man|bash|zsh|fish: a file to install beside the command, on standard output; or
// markdown: the sections of docs/command/.
#include "cli/documentation.h"

#include <cstdio>
#include <string_view>

#include "cli/commands.h"
#include "cli/options.h"

namespace etstream::cli {

std::vector<WorkingCommand> working_commands(const CLI::App& app) {
  std::vector<WorkingCommand> out;
  for (const CLI::App* command : app.get_subcommands({})) {
    const auto nested = working_commands(*command);
    if (nested.empty()) out.push_back({command->get_name(), command});
    for (const auto& [name, within] : nested) out.push_back({command->get_name() + " " + name, within});
  }
  return out;
}

Completion completion_of(const CLI::Option& option) {
  const std::string value = value_of(option);
  if (value.empty() || value == kNumber || value == kName || value == kSize) return Completion::kNothing;
  if (value == kSubcommand) return Completion::kSubcommands;
  if (value.find('|') != std::string::npos) return Completion::kChoices;
  return value == kFolder ? Completion::kFolders : Completion::kFiles;
}

}  // namespace etstream::cli

int main(int argc, char** argv) {
  using namespace etstream::cli;
  try {
    ChosenCommand chosen;
    const auto app = make_command_line(chosen);
    const std::string_view wanted = argc == 2 ? argv[1] : "";
    const std::string text = wanted == "man"        ? manual_page(*app)
                             : wanted == "bash"     ? bash_completion(*app)
                             : wanted == "zsh"      ? zsh_completion(*app)
                             : wanted == "fish"     ? fish_completion(*app)
                             : wanted == "markdown" ? markdown_page(*app)
                                                    : "";
    if (text.empty()) {
      return std::fputs("usage: etstream_documentation man|bash|zsh|fish|markdown\n", stderr), 2;
    }
    return std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0 ? 1 : 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "etstream_documentation: %s\n", error.what());
    return 1;
  }
}
