// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <string_view>

#include "cli/documentation.h"
#include "core/base/text.h"

namespace etstream::cli {
namespace {

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
  return CLI::detail::join(out, " ");
}

std::string command_names(const CLI::App& app) {
  std::vector<std::string> out;
  for (const CLI::App* command : app.get_subcommands({})) out.push_back(command->get_name());
  return CLI::detail::join(out, " ");
}

/// Returns the possible values of an option of `tool`, between spaces; "" if they are not known.
std::string choices_of(const CLI::Option& option, const CLI::App& tool) {
  const Completion completion = completion_of(option);
  if (completion == Completion::kSubcommands) return command_names(tool);
  if (completion != Completion::kChoices) return "";
  return CLI::detail::join(CLI::detail::split(value_of(option), '|'), " ");
}

/// Returns a line with which bash completes with `words`, which are divided by spaces.
std::string bash_words(const std::string& words) {
  return text("mapfile -t COMPREPLY < <(compgen -W '{}' -- \"$word\")", words);
}

/// Returns the cases in which bash completes the values of options. A case without words leaves them to the
/// shell, which completes files.
std::string bash_values(const WorkingCommand& command, const CLI::App& tool) {
  std::string out;
  for (const CLI::Option* option : command.app->get_options()) {
    std::vector<std::string> patterns;
    for (const std::string& name : names_of(*option)) patterns.push_back(text("'{} {}'", command.name, name));
    if (patterns.empty() || value_of(*option).empty()) continue;
    const Completion completion = completion_of(*option);
    out += text("    {}) ", CLI::detail::join(patterns, " | "));
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
    out += " " + shell_word(text("({}){}{}[{}]{}", CLI::detail::join(names, " "), name, joint,
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

/// Returns the code that completes the words behind a subcommand. In a group, the next word chooses the code.
std::string zsh_arguments(const CLI::App& app, const CLI::App& tool) {
  const std::vector<const CLI::App*> subcommands = app.get_subcommands({});
  if (subcommands.empty()) return "_arguments" + zsh_options(app, tool);
  std::string cases;
  for (const CLI::App* command : subcommands) {
    cases += text(" {}) {} ;;", command->get_name(), zsh_arguments(*command, tool));
  }
  return text(
      "if (( CURRENT == 2 )); then commands=({}); _describe -t commands command commands; "
      "else shift words; (( CURRENT-- )); case $words[1] in{} esac; fi",
      zsh_described(app), cases);
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

/// `complete` is the beginning of all lines.
std::string fish_subcommand(const std::string& complete, const CLI::App& app, const CLI::App& tool) {
  static constexpr std::string_view kSeen = "__fish_seen_subcommand_from";
  const std::string start = text("{} -n '{} {}", complete, kSeen, app.get_name());
  std::string out;
  for (const CLI::Option* option : app.get_options()) out += fish_option(*option, start + "'", tool);
  for (const CLI::App* command : app.get_subcommands({})) {
    out += text("{}; and not {} {}' -a {} -d {}\n", start, kSeen, command_names(app), command->get_name(),
                fish_word(command->get_description()));
    for (const CLI::Option* option : command->get_options()) {
      if (is_help(*option)) continue;
      out += fish_option(*option, text("{}; and {} {}'", start, kSeen, command->get_name()), tool);
    }
  }
  return out;
}

}  // namespace

std::string bash_completion(const CLI::App& app) {
  const auto options_of = [](std::string_view name, const CLI::App& command) {
    return text("    '{}') options='{}' ;;\n", name, option_names(command));
  };
  const auto words_of = [](std::string_view name, const CLI::App& command) {
    return text("    {}) compopt +o default; {} ;;\n", name, bash_words(command_names(command)));
  };
  std::string values;
  std::string options = options_of("", app);
  for (const WorkingCommand& command : working_commands(app)) {
    values += bash_values(command, app);
    options += options_of(command.name, *command.app);
  }
  std::string words = words_of("''", app);
  for (const WorkingCommand& command : working_commands(app)) {
    const auto names_one = [](const CLI::Option* option) {
      return completion_of(*option) == Completion::kSubcommands;
    };
    if (std::ranges::any_of(command.app->get_options(), names_one)) words += words_of(command.name, app);
  }
  std::string groups;
  for (const CLI::App* group : app.get_subcommands({})) {
    if (group->get_subcommands({}).empty()) continue;
    groups += (groups.empty() ? "" : "|") + group->get_name();
    words += words_of(group->get_name(), *group);
  }
  return "# Completes the command " + app.get_name() +
         R"( in bash. Where this gives nothing, bash completes files.
_)" + app.get_name() +
         R"(() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command= options= i
  [[ $before != = ]] || before=${COMP_WORDS[COMP_CWORD-2]}
  [[ $word != = ]] || word=
  for ((i = 1; i < COMP_CWORD; ++i)); do
    [[ ${COMP_WORDS[i]} != -* ]] || continue
    command+=${command:+ }${COMP_WORDS[i]}
    case $command in )" +
         groups +
         R"() ;; *) break ;; esac
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
    cases += text("      {}) {} ;;\n", command->get_name(), zsh_arguments(*command, app));
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
    out += fish_subcommand(complete, *command, app);
  }
  return out;
}

}  // namespace etstream::cli
