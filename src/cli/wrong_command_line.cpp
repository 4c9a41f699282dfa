// SPDX-License-Identifier: BSD-3-Clause
#include "cli/wrong_command_line.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <utility>

#include "cli/nearest.h"
#include "cli/other_command.h"
#include "core/base/text.h"
#include "etstream/packed_file.h"

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

bool takes_value(const CLI::Option& option) {
  return option.nonpositional() && option.get_items_expected_max() > 0;
}

std::string ending(const std::string& path) {
  return std::filesystem::path(unpacked_name(path)).extension().string();
}

/// Returns the option for which `word`, an argument without a name, was probably meant: an option that is not
/// given, and whose value has the same ending, as in CASES.json. Returns null if there is none, or several.
const CLI::Option* option_for(const CLI::App& command, const std::string& word) {
  const CLI::Option* found = nullptr;
  for (const CLI::Option* option : command.get_options()) {
    const std::string value = takes_value(*option) && option->count() == 0 ? option->get_type_name() : "";
    if (ending(value).empty() || ending(value) != ending(word)) continue;
    if (found != nullptr) return nullptr;
    found = option;
  }
  return found;
}

/// Returns whether a value of `option` has the ending of `word`, as in CASES.json.
bool fits(const CLI::Option& option, const std::string& word) {
  return !ending(word).empty() && ending(word) == ending(option.get_type_name());
}

/// Returns the argument without a name that looks like the value of `option`; "" if there is none.
std::string in_other_place(const CLI::App& command, const CLI::Option& option) {
  for (const CLI::Option* positional : command.get_options()) {
    const bool is_one = !positional->nonpositional() && positional->count() == 1;
    if (is_one && fits(option, positional->results().front())) return positional->results().front();
  }
  return "";
}

Error wrong(std::string words) { return {ErrorCode::kInvalidArgument, std::move(words)}; }

/// Makes the error with the advice "did you mean --cases?"; without it if `meant` is empty.
Error did_you_mean(std::string words, const std::string& meant) {
  Error out = wrong(std::move(words));
  if (!meant.empty()) out.advice = {text("did you mean {}?", meant)};
  return out;
}

/// Returns "--cases cases.json" if `option` lacks a value, and an argument looks like it: one that has no
/// place, or one of a list that is no file.
std::string misplaced_value(const CLI::App& command, const CLI::Option& option) {
  Words words = command.remaining();
  const bool is_alone = std::ranges::none_of(words, is_option) && words.size() == 1;
  for (const CLI::Option* positional : command.get_options()) {
    if (positional->nonpositional() || positional->count() < 2) continue;
    std::error_code failed;
    std::ranges::copy_if(positional->results(), std::back_inserter(words),
                         [&](const std::string& path) { return !std::filesystem::exists(path, failed); });
  }
  for (const std::string& word : words) {
    if (is_option(word) || (!fits(option, word) && !(is_alone && word == words.front()))) continue;
    const std::string swapped = fits(option, word) ? "" : in_other_place(command, option);
    if (swapped.empty()) return text("{} {}", option.get_name(), printable(word));
    return text("{} {} {}", printable(word), option.get_name(), printable(swapped));
  }
  return "";
}

/// Quotes the words for a shell.
std::string as_typed(const Words& words) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+:,./@%";
  std::string out;
  for (const std::string& word : words) {
    const bool is_plain = !word.empty() && word.find_first_not_of(kPlain) == std::string::npos;
    std::string quoted;
    for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    out += (out.empty() ? "" : " ") + (is_plain ? word : text("'{}'", quoted));
  }
  return printable(out);
}

/// Returns the message about a command to run that does not come after "--"; "" if an option before it is
/// wrong.
std::string misplaced_command(const CLI::App& command, const Words& arguments, const ChosenCommand& chosen) {
  const CLI::Option* const place = command.get_option_no_throw(kOtherCommand);
  constexpr std::string_view kWhere = "the command to run comes after --";
  if (place->count() == 0) {
    return command.remaining().empty()
               ? text("{}: etstream {} -- python3 export.py", kWhere, command.get_name())
               : "";
  }
  if (!chosen.command.empty()) {
    if (!command.remaining().empty()) return "";
    return text("{} comes before --; the command to run comes after it", quote(place->results().front()));
  }
  const auto begin = std::ranges::find(arguments, place->results().front());
  const auto left = command.remaining();
  const auto wrong = left.empty() ? arguments.end() : std::ranges::find(arguments, left.front());
  if (wrong < begin) return "";
  return text("{}: etstream {} -- {}", kWhere, as_typed(Words(arguments.begin(), begin)),
              as_typed(Words(begin, arguments.end())));
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
  const CLI::Option* const meant = option_for(command, words.front());
  return did_you_mean(text("{} is an argument too many", quote(words.front())),
                      meant == nullptr ? "" : text("{} {}", meant->get_name(), printable(words.front())));
}

/// Returns the error about missing arguments; `words` are CLI11's.
Error describe_missing(const CLI::App& command, const std::string& words) {
  constexpr std::string_view kEnd = " is required";
  const Words names = subcommand_names(command);
  if (!names.empty()) return wrong(text("expected a subcommand: {}", CLI::detail::join(names, ", ")));
  const CLI::Option* const option = command.get_option_no_throw(words.substr(0, words.size() - kEnd.size()));
  return did_you_mean(words,
                      option == nullptr || !takes_value(*option) ? "" : misplaced_value(command, *option));
}

Error describe_within(const CLI::App& command, const CLI::ParseError& error) {
  if (const auto* const value = dynamic_cast<const WrongValue*>(&error)) return value->error;
  const bool is_missing = is_a<CLI::RequiredError>(error);
  // A slip in the name of an option or a subcommand leaves another one missing.
  const Words left = command.remaining();
  const bool is_slip = std::ranges::any_of(left, is_option) || !subcommand_names(command).empty();
  if (!left.empty() && (is_a<CLI::ExtrasError>(error) || (is_missing && is_slip))) {
    return describe_extra(command, left);
  }
  if (is_missing) return describe_missing(command, error.what());
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
