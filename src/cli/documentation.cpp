// SPDX-License-Identifier: BSD-3-Clause
//
// etstream_documentation man|bash|zsh|fish: what is installed beside the command, on standard output; or
// markdown: the sections of docs/command.md.
#include "cli/documentation.h"

#include <cstdio>
#include <string_view>

#include "cli/commands.h"
#include "cli/options.h"

namespace etstream::cli {
namespace {

Completion completion_of(const std::string& value) {
  if (value.empty() || value == kNumber || value == kName) return Completion::kNothing;
  if (value.find('|') != std::string::npos) return Completion::kChoices;
  return value == kFolder ? Completion::kFolders : Completion::kFiles;
}

OptionText describe(const CLI::Option& option) {
  OptionText out;
  for (const std::string& name : option.get_snames()) out.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) out.names.push_back("--" + name);
  if (out.by_place()) {
    out.value = option.get_name();
  } else if (option.get_items_expected_max() > 0) {
    out.value = option.get_type_name();
  }
  out.description = option.get_description();
  out.completion = completion_of(out.value);
  if (out.completion == Completion::kChoices) out.choices = CLI::detail::split(out.value, '|');
  out.required = option.get_required();
  return out;
}

}  // namespace

CommandText describe(const CLI::App& app) {
  CommandText out = {
      .name = app.get_name(), .description = app.get_description(), .options = {}, .subcommands = {}};
  for (const CLI::Option* option : app.get_options()) out.options.push_back(describe(*option));
  for (const CLI::App* command : app.get_subcommands({})) out.subcommands.push_back(describe(*command));
  return out;
}

std::vector<CommandText> working_commands(const CommandText& command) {
  std::vector<CommandText> out;
  for (const CommandText& subcommand : command.subcommands) {
    if (subcommand.subcommands.empty()) out.push_back(subcommand);
    for (CommandText& nested : working_commands(subcommand)) {
      nested.name = subcommand.name + " " + nested.name;
      out.push_back(std::move(nested));
    }
  }
  return out;
}

}  // namespace etstream::cli

int main(int argc, char** argv) {
  using namespace etstream::cli;
  try {
    Run run;
    const CommandText command = describe(*make_command_line(run));
    const std::string_view wanted = argc == 2 ? argv[1] : "";
    const std::string text = wanted == "man"        ? manual_page(command)
                             : wanted == "bash"     ? bash_completion(command)
                             : wanted == "zsh"      ? zsh_completion(command)
                             : wanted == "fish"     ? fish_completion(command)
                             : wanted == "markdown" ? markdown_page(command)
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
