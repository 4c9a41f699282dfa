// SPDX-License-Identifier: BSD-3-Clause
#include <string_view>

#include "cli/documentation.h"
#include "cli/options.h"
#include "core/base/text.h"

namespace etstream::cli {
namespace {

/// Returns `words` for a cell of a table, which `|` would end, also in code.
std::string cell(std::string_view words) {
  std::string out;
  for (const char c : words) out += c == '|' ? "\\|" : std::string(1, c);
  return out;
}

/// Returns the names of an option: "`-o`, `--output OUT.bpte`"
std::string heading(const CLI::Option& option) {
  const std::string names = CLI::detail::join(names_of(option), "`, `");
  const std::string value = value_of(option);
  return cell(text("`{}{}{}`", names, names.empty() || value.empty() ? "" : " ", value));
}

/// Returns the command with its required arguments; the table has the rest.
std::string synopsis(const WorkingCommand& command) {
  std::string out = command.name;
  for (const CLI::Option* option : command.app->get_options()) {
    if (!option->get_required()) continue;
    if (option->nonpositional()) out += " " + names_of(*option).front();
    out += " " + value_of(*option);
  }
  return out + " [OPTION]...";
}

}  // namespace

std::string markdown_page(const CLI::App& app) {
  std::string out;
  for (const WorkingCommand& command : working_commands(app)) {
    const std::string name = app.get_name() + " " + command.name;
    out += text("<!-- {} -->\n## {}\n\n{}.\n\n    {} {}\n\n| option | |\n|---|---|\n", name, name,
                command.app->get_description(), app.get_name(), synopsis(command));
    for (const CLI::Option* option : command.app->get_options()) {
      if (is_help(*option) || is_common(*option)) continue;
      out += text("| {} | {} |\n", heading(*option), cell(option->get_description()));
    }
    const std::string common = CLI::detail::join(common_names(*command.app), "`, `");
    if (!common.empty()) out += text("\n[Common options](common.md#common-options): `{}`.\n", common);
    out += "\n<!-- end -->\n";
  }
  out += "<!-- etstream common options -->\n## Common options\n\n| option | |\n|---|---|\n";
  for (const auto& [name, description] : kCommonOptions) out += text("| `{}` | {} |\n", name, description);
  return out + "\n<!-- end -->\n";
}

}  // namespace etstream::cli
