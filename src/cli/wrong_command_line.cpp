// SPDX-License-Identifier: BSD-3-Clause
#include "cli/wrong_command_line.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "cli/nearest.h"
#include "cli/other_command.h"
#include "core/base/text.h"

namespace etstream::cli {
namespace {

using Words = std::vector<std::string>;

/// Returns the words that choose `app`: "bundle", "fat pack"; "" for the whole command.
std::string path_of(const CLI::App& app) {
  if (app.get_parent() == nullptr) return "";
  const std::string before = path_of(*app.get_parent());
  return before + (before.empty() ? "" : " ") + app.get_name();
}

/// Returns the subcommand that the arguments chose, as far as they did.
const CLI::App& innermost(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? app : innermost(*parsed.front());
}

/// Returns the app that the arguments chose, or the one before it that has words left over.
const CLI::App& with_extras(const CLI::App& command) {
  const CLI::App* out = &command;
  while (out->remaining().empty() && out->get_parent() != nullptr) out = out->get_parent();
  return out->remaining().empty() ? command : *out;
}

Words subcommand_names(const CLI::App& app) {
  Words out;
  for (const CLI::App* command : app.get_subcommands({})) out.push_back(command->get_name());
  return out;
}

Words long_names(const CLI::App& app) {
  Words out;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) out.push_back("--" + name);
  }
  return out;
}

template <class Kind>
bool is_a(const CLI::ParseError& error) {
  return dynamic_cast<const Kind*>(&error) != nullptr;
}

bool is_option(const std::string& word) { return word.size() > 1 && word.starts_with('-'); }

Error wrong(std::string words) { return {ErrorCode::kInvalidArgument, std::move(words)}; }

/// Makes the error with the advice "did you mean --cases?"; without it if `meant` is empty.
Error did_you_mean(std::string words, const std::string& meant) {
  Error out = wrong(std::move(words));
  if (!meant.empty()) out.advice = {text("did you mean {}?", meant)};
  return out;
}

/// Returns the message about a command to run that does not come after "--"; "" if an option before it is
/// wrong.
std::string misplaced_command(const CLI::App& command, const Words& arguments, const ChosenCommand& chosen) {
  constexpr std::string_view kWhere = "the command to run comes after --";
  const Words misplaced = command.get_option_no_throw(kOtherCommand)->results();
  const Words left = command.remaining();
  if (misplaced.empty()) {
    return left.empty() ? text("{}: etstream {} -- python3 export.py", kWhere, command.get_name()) : "";
  }
  const std::string word = quote(misplaced.front());
  if (!chosen.command.empty()) {
    return left.empty() ? text("{} comes before --; the command to run comes after it", word) : "";
  }
  const auto wrong = left.empty() ? arguments.end() : std::ranges::find(arguments, left.front());
  if (wrong < std::ranges::find(arguments, misplaced.front())) return "";
  return text("{}, found {} without it", kWhere, word);
}

/// Returns the message about an option with too few values, or too many; `words` begin with its name.
std::string describe_count(const CLI::App& command, const std::string& words) {
  const CLI::Option* const option = command.get_option_no_throw(words.substr(0, words.find(':')));
  if (option == nullptr) return words;
  const std::string name = words.substr(0, words.find(':'));
  if (option->count() == 0) return text("{}: expected {} behind it", name, option->get_type_name());
  const int least = option->get_items_expected_min();
  const int most = option->get_items_expected_max();
  const bool is_open = most >= CLI::detail::expected_max_vector_size;
  const std::string more = is_open ? " or more" : most > least ? text(" to {}", most) : "";
  return text("{}: expected {}{}, found {}", name, least, more, option->count());
}

/// Returns the error about words that are left over.
Error describe_extra(const CLI::App& command, const Words& words) {
  const auto option = std::ranges::find_if(words, is_option);
  if (option != words.end()) {
    const std::string name = option->substr(0, option->find('='));
    const std::string meant = nearest(name, long_names(command));
    return did_you_mean(text("there is no option {}", quote(name)), meant);
  }
  if (!command.get_subcommands({}).empty()) return no_subcommand(command, words.front());
  return wrong(text("{} is an argument too many", quote(words.front())));
}

Error describe_within(const CLI::App& command, const CLI::ParseError& error) {
  if (const auto* const value = dynamic_cast<const WrongValue*>(&error)) return value->error;
  const bool is_missing = is_a<CLI::RequiredError>(error);
  // A slip in the name of an option or a subcommand leaves another one missing.
  const Words left = command.remaining();
  const Words names = subcommand_names(command);
  const bool is_slip = std::ranges::any_of(left, is_option) || !names.empty();
  if (!left.empty() && (is_a<CLI::ExtrasError>(error) || (is_missing && is_slip))) {
    return describe_extra(command, left);
  }
  if (is_missing && !names.empty()) {
    return wrong(text("expected a subcommand: {}", CLI::detail::join(names, ", ")));
  }
  const bool is_count = is_a<CLI::ArgumentMismatch>(error);
  return wrong(is_count ? describe_count(command, error.what()) : error.what());
}

}  // namespace

Error no_subcommand(const CLI::App& app, const std::string& word) {
  return did_you_mean(text("there is no subcommand {}", quote(word)), nearest(word, subcommand_names(app)));
}

std::string describe(const CLI::App& app, const CLI::ParseError& error, const Words& arguments,
                     const ChosenCommand& chosen) {
  const CLI::App& command = with_extras(innermost(app));
  const std::string path = path_of(command);
  const std::string start = (path.empty() ? "etstream" : "etstream ") + path.substr(0, path.find(' '));
  const bool is_misplaced = is_a<CLI::ExtrasError>(error) || is_a<CLI::RequiredError>(error);
  const bool runs_another = command.get_option_no_throw(kOtherCommand) != nullptr;
  if (runs_another && is_misplaced) {
    const std::string words = misplaced_command(command, arguments, chosen);
    if (!words.empty()) return text("{}: {}", start, words);
  }
  Error found = describe_within(command, error);
  const bool is_for_all = path.empty() || path == "help";
  if (found.advice.empty()) found.advice = {"see etstream help", is_for_all ? "" : " " + path};
  return text("{}: {}", start, full_message(found));
}

}  // namespace etstream::cli
