// SPDX-License-Identifier: BSD-3-Clause
//
// etstream_documentation man|bash|zsh|fish: a file to install beside the command, on standard output; or
// markdown: the sections of docs/command/. All are made from the command line's own definitions.
#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command_line.h"
#include "cli/help.h"
#include "core/base/text.h"
#include "etstream/version.h"

namespace etstream::cli {
namespace {

/// The kinds of words with which a shell can complete a value.
enum class Completion { kNothing, kFiles, kFolders, kChoices, kSubcommands };

Completion completion_of(const CLI::Option& option) {
  const std::string value = value_of(option);
  if (value.empty() || value == kNumber || value == kName || value == kSize) return Completion::kNothing;
  if (value == kSubcommand) return Completion::kSubcommands;
  // Words in capitals stand for others: SIZE|N%.
  const bool has_capitals = std::ranges::any_of(value, [](char c) { return c >= 'A' && c <= 'Z'; });
  if (value.find('|') != std::string::npos && !has_capitals) return Completion::kChoices;
  return value == kFolder ? Completion::kFolders : Completion::kFiles;
}

constexpr std::string_view kDescription =
    R"(ExecuTorch runs PyTorch models on phones and microcontrollers.
Its files are programs (.pte), and programs bundled with test cases (.bpte).
.B etstream
writes, checks, shows and takes apart these files in about the same few MiB of memory, whatever their size.
.PP
An output appears under its name once it is complete.
After an error, an interrupt or on a full disk, what was there before is as it was.
An output named
.B \-
is standard output.
)";

constexpr std::string_view kAfterCommands =
    R"(.SH TEST CASES
The file that
.B \-\-cases
names gives each method its test cases; paths in it are relative to it:
.PP
.EX
{"forward": [{"inputs": [{"npy": "x.npy"}, 3], "expected_outputs": [{"npy": "y.npy"}]}]}
.EE
.PP
A value is an integer, a double (a number with point or exponent, or {"double": "nan"}), true, false, or a
tensor: {"npy": "x.npy"}, {"safetensors": "f.safetensors", "name": "x"}, or
{"raw": "x.bin", "dtype": "float32", "shape": [1, 3]}, with "dim_order" where it is not contiguous.
Where a method comes twice, a list [{"method": "forward", "cases": [...]}] takes the place of the object.
.SH EXIT STATUS
.TP
.B 0
It is done; for
.BR verify ,
the file is sound.
.TP
.B 1
An error, told on standard error.
.TP
.B 2
A wrong command line.
.PP
The sections of
.BR compare ", " diff ", " explain ", " run " and " profile
have those of their own.
An interrupt (SIGINT, SIGTERM, SIGHUP) ends the command by that signal once it has cleaned up.
)";

/// Returns `text` so that roff shows it to the letter.
std::string roff(std::string_view text) {
  static constexpr std::string_view kSpecial = "\\-'\"^~`";
  static constexpr std::string_view kEscapes[] = {"\\e", "\\-", "\\(aq", "\\(dq", "\\(ha", "\\(ti", "\\(ga"};
  std::string out;
  for (const char c : text) {
    const std::size_t special = kSpecial.find(c);
    out += special == std::string_view::npos ? std::string(1, c) : std::string(kEscapes[special]);
  }
  return out;
}

std::string bold(std::string_view text) { return "\\fB" + roff(text) + "\\fR"; }
std::string italic(std::string_view text) { return "\\fI" + roff(text) + "\\fR"; }

/// Returns the heading of an option: "-o, --output OUT.bpte", or with its first name alone.
std::string heading(const CLI::Option& option, bool all_names) {
  std::vector<std::string> names = names_of(option);
  if (!all_names) names.resize(std::min(names.size(), std::size_t{1}));
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + bold(name);
  const std::string value = value_of(option);
  if (value.empty()) return out;
  return out + (out.empty() ? "" : " ") + italic(value);
}

/// Lists arguments and required options first; leaves out help, which all commands have.
std::string synopsis(const CLI::App& command) {
  std::string required;
  std::string optional;
  for (const CLI::Option* option : command.get_options()) {
    if (is_help(*option)) continue;
    if (option->get_required()) {
      required += " " + heading(*option, false);
    } else {
      optional += text(" [{}]", heading(*option, false));
    }
  }
  return bold("etstream " + command.get_name()) + required + optional + "\n";
}

/// Lists the options. For a subcommand it leaves out help, which all have.
std::string options(const CLI::App& app, bool subcommand) {
  std::string out;
  for (const CLI::Option* option : app.get_options()) {
    if (subcommand && (is_help(*option) || is_common(*option))) continue;
    out += text(".TP\n{}\n{}.\n", heading(*option, true), roff(option->get_description()));
  }
  const std::string common = CLI::detail::join(common_names(app), bold, ", ");
  if (!common.empty()) out += text(".PP\nCommon options: {}.\n", common);
  return out;
}

std::string manual_page(const CLI::App& app) {
  std::string synopses;
  std::string commands;
  for (const CLI::App* command : app.get_subcommands({})) {
    synopses += (synopses.empty() ? "" : ".br\n") + synopsis(*command);
    const std::string examples = roff(joined(examples_of(*command), "\n"));
    commands += text(".SS etstream {}\n{}.\n{}.PP\n.EX\n{}\n.EE\n", roff(command->get_name()),
                     roff(command->get_description()), options(*command, true), examples);
    if (!command->get_footer().empty()) commands += text(".PP\n{}\n", roff(command->get_footer()));
  }
  std::string common;
  for (const auto& [name, description] : kCommonOptions) {
    common += text(".TP\n{}\n{}.\n", bold(name), roff(description));
  }
  return text(
      ".\\\" SPDX-License-Identifier: BSD-3-Clause\n{}{} \\- write, check, show and take apart ExecuTorch's "
      "files\n.SH SYNOPSIS\n.nh\n{}.hy\n.SH DESCRIPTION\n{}.SH OPTIONS\n{}.SS Of subcommands that write or "
      "report\n{}.SH COMMANDS\n{}{}",
      ".TH ETSTREAM 1 \"\" \"etstream " ETSTREAM_VERSION "\" \"User Commands\"\n.SH NAME\n", app.get_name(),
      synopses, kDescription, options(app, false), common, commands, kAfterCommands);
}

/// Returns `words` for a cell of a table, which `|` would end, also in code.
std::string cell(std::string_view words) {
  std::string out;
  for (const char c : words) out += c == '|' ? "\\|" : std::string(1, c);
  return out;
}

/// Returns the names of an option: "`-o`, `--output OUT.bpte`"
std::string table_heading(const CLI::Option& option) {
  const std::string names = joined(names_of(option), "`, `");
  const std::string value = value_of(option);
  return cell(text("`{}{}{}`", names, names.empty() || value.empty() ? "" : " ", value));
}

/// Returns the command with its required arguments; the table has the rest.
std::string table_synopsis(const CLI::App& command) {
  std::string out = command.get_name();
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_required()) continue;
    if (option->nonpositional()) out += " " + names_of(*option).front();
    out += " " + value_of(*option);
  }
  return out + " [OPTION]...";
}

/// Returns a section for each subcommand, between the comments `<!-- NAME -->` and `<!-- end -->`.
std::string markdown_page(const CLI::App& app) {
  std::string out;
  for (const CLI::App* command : app.get_subcommands({})) {
    const std::string name = "etstream " + command->get_name();
    out += text("<!-- {} -->\n## {}\n\n{}.\n\n    etstream {}\n\n| option | |\n|---|---|\n", name, name,
                command->get_description(), table_synopsis(*command));
    for (const CLI::Option* option : command->get_options()) {
      if (is_help(*option) || is_common(*option)) continue;
      out += text("| {} | {} |\n", table_heading(*option), cell(option->get_description()));
    }
    const std::string common = joined(common_names(*command), "`, `");
    if (!common.empty()) out += text("\n[Common options](common.md#common-options): `{}`.\n", common);
    out += "\n<!-- end -->\n";
  }
  out += "<!-- etstream common options -->\n## Common options\n\n| option | |\n|---|---|\n";
  for (const auto& [name, description] : kCommonOptions) out += text("| `{}` | {} |\n", name, description);
  return out + "\n<!-- end -->\n";
}

/// Returns `text` with `escape` before each of `characters`.
std::string escaped(std::string_view text, std::string_view characters, std::string_view escape = "\\") {
  std::string out;
  for (const char c : text) {
    if (characters.find(c) != std::string_view::npos) out += escape;
    out += c;
  }
  return out;
}

/// Quotes a word for bash and zsh.
std::string shell_word(std::string_view text) { return "'" + escaped(text, "'", "'\\'") + "'"; }

/// Returns the names of all options, between spaces.
std::string option_names(const CLI::App& app) {
  std::vector<std::string> out;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : names_of(*option)) out.push_back(name);
  }
  return joined(out, " ");
}

/// Returns the possible values of an option of `tool`, between spaces; "" if they are not known.
std::string choices_of(const CLI::Option& option, const CLI::App& tool) {
  const Completion completion = completion_of(option);
  if (completion == Completion::kSubcommands) return joined(subcommand_names(tool), " ");
  if (completion != Completion::kChoices) return "";
  return joined(CLI::detail::split(value_of(option), '|'), " ");
}

/// Returns a line with which bash completes with `words`, which are divided by spaces.
std::string bash_words(const std::string& words) {
  return text("mapfile -t COMPREPLY < <(compgen -W '{}' -- \"$word\")", words);
}

/// Returns the cases in which bash completes the values of options. A case without words leaves them to the
/// shell, which completes files.
std::string bash_values(const CLI::App& command, const CLI::App& tool) {
  std::string out;
  for (const CLI::Option* option : command.get_options()) {
    std::vector<std::string> patterns;
    for (const std::string& name : names_of(*option)) {
      patterns.push_back(text("'{} {}'", command.get_name(), name));
    }
    if (patterns.empty() || value_of(*option).empty()) continue;
    const Completion completion = completion_of(*option);
    out += text("    {}) ", joined(patterns, " | "));
    if (completion != Completion::kFiles) out += "compopt +o default; ";
    if (completion == Completion::kFolders) out += "compopt -o dirnames; ";
    const std::string choices = choices_of(*option, tool);
    if (!choices.empty()) out += bash_words(choices) + "; ";
    out += "return ;;\n";
  }
  return out;
}

std::string zsh_option(const CLI::Option& option, const CLI::App& tool) {
  static constexpr std::string_view kSpecial = "\\:[]";
  std::string value = value_of(option);
  const bool has_value = !value.empty();
  if (has_value) {
    const Completion completion = completion_of(option);
    value = ":" + escaped(value, kSpecial) + ":";
    if (completion == Completion::kFiles) value += "_files";
    if (completion == Completion::kFolders) value += "_files -/";
    const std::string choices = choices_of(option, tool);
    if (!choices.empty()) value += "(" + choices + ")";
  }
  const std::vector<std::string> names = names_of(option);
  if (names.empty()) return " " + shell_word(value);
  std::string out;
  for (const std::string& name : names) {
    const std::string_view joint = !has_value ? "" : name.starts_with("--") ? "=" : "+";
    out += " " + shell_word(text("({}){}{}[{}]{}", joined(names, " "), name, joint,
                                 escaped(option.get_description(), kSpecial), value));
  }
  return out;
}

std::string zsh_options(const CLI::App& app, const CLI::App& tool) {
  std::string out;
  for (const CLI::Option* option : app.get_options()) out += zsh_option(*option, tool);
  return out;
}

/// Returns the subcommands, for _describe.
std::string zsh_described(const CLI::App& app) {
  std::string out;
  for (const CLI::App* command : app.get_subcommands({})) {
    out += (out.empty() ? "" : " ") +
           shell_word(escaped(command->get_name(), ":") + ":" + command->get_description());
  }
  return out;
}

std::string fish_word(std::string_view text) { return "'" + escaped(text, "\\'") + "'"; }

std::string fish_option(const CLI::Option& option, const std::string& start, const CLI::App& tool) {
  std::string out = start;
  for (const std::string& name : option.get_snames()) out += " -s " + name;
  for (const std::string& name : option.get_lnames()) out += " -l " + name;
  if (!value_of(option).empty()) {
    const Completion completion = completion_of(option);
    if (completion != Completion::kFiles) out += " -x";
    if (completion == Completion::kFiles) out += option.nonpositional() ? " -r -F" : " -F";
    if (completion == Completion::kFolders) out += " -a '(__fish_complete_directories)'";
    const std::string choices = choices_of(option, tool);
    if (!choices.empty()) out += " -a " + fish_word(choices);
  }
  // An argument without a name has no entry of its own to describe.
  return out + (option.nonpositional() ? " -d " + fish_word(option.get_description()) : "") + "\n";
}

std::string bash_completion(const CLI::App& app) {
  const auto options_of = [](std::string_view name, const CLI::App& command) {
    return text("    '{}') options='{}' ;;\n", name, option_names(command));
  };
  const auto words_of = [&](std::string_view name) {
    return text("    {}) compopt +o default; {} ;;\n", name, bash_words(joined(subcommand_names(app), " ")));
  };
  std::string values;
  std::string options = options_of("", app);
  std::string words = words_of("''");
  const auto names_one = [](const CLI::Option* option) {
    return completion_of(*option) == Completion::kSubcommands;
  };
  for (const CLI::App* command : app.get_subcommands({})) {
    values += bash_values(*command, app);
    options += options_of(command->get_name(), *command);
    if (std::ranges::any_of(command->get_options(), names_one)) words += words_of(command->get_name());
  }
  return "# Completes the command " + app.get_name() +
         R"( in bash. Where this gives nothing, bash completes files.
_)" + app.get_name() +
         R"(() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command= options= i
  [[ $before != = ]] || before=${COMP_WORDS[COMP_CWORD-2]}
  [[ $word != = ]] || word=
  for ((i = 1; i < COMP_CWORD; ++i)); do
    [[ ${COMP_WORDS[i]} == -* ]] || { command=${COMP_WORDS[i]}; break; }
  done
  COMPREPLY=()
  case "$command $before" in
)" + values +
         R"(  esac
  case $command in
)" + options +
         R"(  esac
  if [[ $word == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
  else
    case $command in
)" + words +
         R"(    esac
  fi
}
complete -o default -F _)" +
         app.get_name() + " " + app.get_name() + "\n";
}

std::string zsh_completion(const CLI::App& app) {
  std::string cases;
  for (const CLI::App* command : app.get_subcommands({})) {
    cases += text("      {}) _arguments{} ;;\n", command->get_name(), zsh_options(*command, app));
  }
  return "#compdef " + app.get_name() + "\n# Completes the command " + app.get_name() + R"( in zsh.
local curcontext=$curcontext state line
local -A opt_args
local -a commands
_arguments -C)" +
         zsh_options(app, app) + R"( '1: :->command' '*:: :->arguments'
case $state in
  command)
    commands=()" +
         zsh_described(app) + R"()
    _describe -t commands command commands ;;
  arguments)
    case $words[1] in
)" + cases +
         R"(    esac ;;
esac
)";
}

std::string fish_completion(const CLI::App& app) {
  const std::string complete = "complete -c " + app.get_name();
  const std::string first = complete + " -n __fish_use_subcommand";
  std::string out = text("# Completes the command {} in fish.\n{} -f\n", app.get_name(), complete);
  for (const CLI::Option* option : app.get_options()) out += fish_option(*option, first, app);
  for (const CLI::App* command : app.get_subcommands({})) {
    out += text("{} -a {} -d {}\n", first, command->get_name(), fish_word(command->get_description()));
    const std::string start = text("{} -n '__fish_seen_subcommand_from {}'", complete, command->get_name());
    for (const CLI::Option* option : command->get_options()) out += fish_option(*option, start, app);
  }
  return out;
}

}  // namespace
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
