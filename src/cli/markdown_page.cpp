// SPDX-License-Identifier: BSD-3-Clause
#include <string_view>

#include "base/text.h"
#include "cli/documentation.h"

namespace etstream::cli {
namespace {

std::string code(std::string_view words) { return text("`{}`", words); }

/// `words` in a cell of a table, which `|` would end, also in code.
std::string cell(std::string_view words) {
  std::string out;
  for (const char c : words) out += c == '|' ? "\\|" : std::string(1, c);
  return out;
}

/// "`-o`, `--output OUT.bpte`"
std::string names(const OptionText& option) {
  std::string out;
  for (const std::string& name : option.names) out += out.empty() ? name : "`, `" + name;
  if (option.has_value()) out += (out.empty() ? "" : " ") + option.value;
  return cell(code(out));
}

/// What is required; the table has the rest.
std::string synopsis(const CommandText& command) {
  std::string out = command.name;
  for (const OptionText& option : command.options) {
    if (!option.required) continue;
    if (!option.by_place()) out += " " + option.names.front();
    out += " " + option.value;
  }
  return out + " [OPTION]...";
}

}  // namespace

std::string markdown_page(const CommandText& command) {
  std::string out;
  for (const CommandText& subcommand : working_commands(command)) {
    const std::string name = command.name + " " + subcommand.name;
    out += text("<!-- {} -->\n## {}\n\n{}.\n\n    {} {}\n\n| option | |\n|---|---|\n", name, name,
                subcommand.description, command.name, synopsis(subcommand));
    for (const OptionText& option : subcommand.options) {
      if (!option.is_help()) out += text("| {} | {} |\n", names(option), cell(option.description));
    }
    out += "\n<!-- end -->\n";
  }
  return out;
}

}  // namespace etstream::cli
