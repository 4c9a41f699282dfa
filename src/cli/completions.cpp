// SPDX-License-Identifier: BSD-3-Clause
#include <string_view>

#include "base/text.h"
#include "cli/documentation.h"

namespace etstream::cli {
namespace {

/// `text` with `escape` before each of `characters`.
std::string escaped(std::string_view text, std::string_view characters, std::string_view escape = "\\") {
  std::string out;
  for (const char c : text) {
    if (characters.find(c) != std::string_view::npos) out += escape;
    out += c;
  }
  return out;
}

/// A word for bash and zsh.
std::string shell_word(std::string_view text) { return "'" + escaped(text, "'", "'\\'") + "'"; }

std::vector<std::string> names_of(const std::vector<OptionText>& options) {
  std::vector<std::string> out;
  for (const OptionText& option : options) out.insert(out.end(), option.names.begin(), option.names.end());
  return out;
}

std::vector<std::string> names_of(const std::vector<CommandText>& commands) {
  std::vector<std::string> out;
  for (const CommandText& command : commands) out.push_back(command.name);
  return out;
}

/// Has bash complete with `words`, which are divided by spaces.
std::string bash_words(const std::string& words) {
  return text("mapfile -t COMPREPLY < <(compgen -W '{}' -- \"$word\")", words);
}

/// What bash does about the value of an option; nothing leaves it to the shell, which completes files.
std::string bash_values(const CommandText& command) {
  std::string out;
  for (const OptionText& option : command.options) {
    if (!option.has_value() || option.by_place()) continue;
    std::vector<std::string> patterns;
    for (const std::string& name : option.names) patterns.push_back(text("'{} {}'", command.name, name));
    out += text("    {}) ", CLI::detail::join(patterns, " | "));
    if (option.completion != Completion::kFiles) out += "compopt +o default; ";
    if (option.completion == Completion::kFolders) out += "compopt -o dirnames; ";
    if (option.completion == Completion::kChoices)
      out += bash_words(CLI::detail::join(option.choices, " ")) + "; ";
    out += "return ;;\n";
  }
  return out;
}

std::string zsh_option(const OptionText& option) {
  static constexpr std::string_view kSpecial = "\\:[]";
  std::string value;
  if (option.has_value()) {
    value = ":" + escaped(option.value, kSpecial) + ":";
    if (option.completion == Completion::kFiles) value += "_files";
    if (option.completion == Completion::kFolders) value += "_files -/";
    if (option.completion == Completion::kChoices)
      value += "(" + CLI::detail::join(option.choices, " ") + ")";
  }
  if (option.by_place()) return " " + shell_word(value);
  std::string out;
  for (const std::string& name : option.names) {
    const std::string_view joint = !option.has_value() ? "" : name.starts_with("--") ? "=" : "+";
    out += " " + shell_word(text("({}){}{}[{}]{}", CLI::detail::join(option.names, " "), name, joint,
                                 escaped(option.description, kSpecial), value));
  }
  return out;
}

std::string zsh_options(const CommandText& command) {
  std::string out;
  for (const OptionText& option : command.options) out += zsh_option(option);
  return out;
}

/// For _describe.
std::string zsh_described(const CommandText& command) {
  return shell_word(escaped(command.name, ":") + ":" + command.description);
}

/// What completes the words behind a subcommand, those of a group by the word that follows it.
std::string zsh_arguments(const CommandText& command) {
  if (command.subcommands.empty()) return "_arguments" + zsh_options(command);
  std::string described;
  std::string cases;
  for (const CommandText& subcommand : command.subcommands) {
    described += " " + zsh_described(subcommand);
    cases += text(" {}) {} ;;", subcommand.name, zsh_arguments(subcommand));
  }
  return text(
      "if (( CURRENT == 2 )); then commands=({}); _describe -t commands command commands; "
      "else shift words; (( CURRENT-- )); case $words[1] in{} esac; fi",
      described.substr(1), cases);
}

std::string fish_word(std::string_view text) { return "'" + escaped(text, "\\'") + "'"; }

std::string fish_option(const OptionText& option, const std::string& start) {
  std::string out = start;
  for (const std::string& name : option.names) {
    out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  }
  if (option.has_value()) {
    if (option.completion != Completion::kFiles) out += " -x";
    if (option.completion == Completion::kFiles) out += option.by_place() ? " -F" : " -r -F";
    if (option.completion == Completion::kFolders) out += " -a '(__fish_complete_directories)'";
    if (option.completion == Completion::kChoices) {
      out += " -a " + fish_word(CLI::detail::join(option.choices, " "));
    }
  }
  // One that goes by its place has no entry of its own to describe.
  return out + (option.by_place() ? "" : " -d " + fish_word(option.description)) + "\n";
}

/// `complete` is what all lines begin with.
std::string fish_subcommand(const std::string& complete, const CommandText& command) {
  static constexpr std::string_view kSeen = "__fish_seen_subcommand_from";
  const std::string start = text("{} -n '{} {}", complete, kSeen, command.name);
  std::string out;
  for (const OptionText& option : command.options) out += fish_option(option, start + "'");
  const std::string nested = CLI::detail::join(names_of(command.subcommands), " ");
  for (const CommandText& subcommand : command.subcommands) {
    out += text("{}; and not {} {}' -a {} -d {}\n", start, kSeen, nested, subcommand.name,
                fish_word(subcommand.description));
    for (const OptionText& option : subcommand.options) {
      if (!option.is_help())
        out += fish_option(option, text("{}; and {} {}'", start, kSeen, subcommand.name));
    }
  }
  return out;
}

}  // namespace

std::string bash_completion(const CommandText& command) {
  const auto options_of = [](std::string_view name, const std::vector<OptionText>& options) {
    return text("    '{}') options='{}' ;;\n", name, CLI::detail::join(names_of(options), " "));
  };
  const auto words_of = [](std::string_view name, const std::vector<CommandText>& subcommands) {
    return text("    {}) compopt +o default; {} ;;\n", name,
                bash_words(CLI::detail::join(names_of(subcommands), " ")));
  };
  std::string values;
  std::string options = options_of("", command.options);
  for (const CommandText& subcommand : working_commands(command)) {
    values += bash_values(subcommand);
    options += options_of(subcommand.name, subcommand.options);
  }
  std::string words = words_of("''", command.subcommands);
  std::string groups;
  for (const CommandText& group : command.subcommands) {
    if (group.subcommands.empty()) continue;
    groups += (groups.empty() ? "" : "|") + group.name;
    words += words_of(group.name, group.subcommands);
  }
  return "# Completes the command " + command.name +
         R"( in bash. Where this gives nothing, bash completes files.
_)" + command.name +
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
         command.name + " " + command.name + "\n";
}

std::string zsh_completion(const CommandText& command) {
  std::string commands;
  std::string cases;
  for (const CommandText& subcommand : command.subcommands) {
    commands += " " + zsh_described(subcommand);
    cases += text("      {}) {} ;;\n", subcommand.name, zsh_arguments(subcommand));
  }
  return "#compdef " + command.name + "\n# Completes the command " + command.name + R"( in zsh.
local curcontext=$curcontext state line
local -A opt_args
local -a commands
_arguments -C)" +
         zsh_options(command) + R"( '1: :->command' '*:: :->arguments'
case $state in
  command)
    commands=()" +
         commands.substr(1) + R"()
    _describe -t commands command commands ;;
  arguments)
    case $words[1] in
)" + cases +
         R"(    esac ;;
esac
)";
}

std::string fish_completion(const CommandText& command) {
  const std::string complete = "complete -c " + command.name;
  const std::string first = complete + " -n __fish_use_subcommand";
  std::string out = "# Completes the command " + command.name + " in fish.\n" + complete + " -f\n";
  for (const OptionText& option : command.options) out += fish_option(option, first);
  for (const CommandText& subcommand : command.subcommands) {
    out += text("{} -a {} -d {}\n", first, subcommand.name, fish_word(subcommand.description));
    out += fish_subcommand(complete, subcommand);
  }
  return out;
}

}  // namespace etstream::cli
