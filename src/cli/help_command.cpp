// SPDX-License-Identifier: BSD-3-Clause
//
// etstream help [SUBCOMMAND]...
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/wrong_command_line.h"
#include "present/print.h"

namespace etstream::cli {
namespace {

struct HelpArguments {
  std::vector<std::string> names;
};

/// Returns the subcommand that the names lead to from `app`. Throws WrongValue if there is none.
const CLI::App& named(const CLI::App& app, const HelpArguments& arguments) {
  const CLI::App* out = &app;
  for (const std::string& name : arguments.names) {
    const auto found =
        out->get_subcommands([&](const CLI::App* command) { return command->get_name() == name; });
    if (found.empty()) throw WrongValue(no_subcommand(*out, name));
    out = found.front();
  }
  return *out;
}

/// Prints the help of `app`. A subcommand's help() can't do this: it prints the help of the chosen
/// subcommand, which is this one.
void print_help(const CLI::App& app, const HelpArguments& arguments) {
  std::string name = app.get_name();
  for (const std::string& each : arguments.names) name += " " + each;
  print_to(stdout, app.get_formatter()->make_help(&named(app, arguments), name, CLI::AppFormatMode::Normal));
}

}  // namespace

void add_help_command(CLI::App& app, ChosenCommand& chosen) {
  const auto [command, arguments] = add_subcommand<HelpArguments>(
      app, chosen, "help", "Show the use of a subcommand, or list all subcommands",
      [&app](const HelpArguments& given) -> Result<void> {
        print_help(app, given);
        return {};
      },
      [&app](const CLI::App&, const HelpArguments& given) { static_cast<void>(named(app, given)); });
  command.add_option(kSubcommand, arguments.names, "A subcommand, such as bundle, or fat pack; none for all");
}

}  // namespace etstream::cli
