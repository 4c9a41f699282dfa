// SPDX-License-Identifier: BSD-3-Clause
//
// The etstream command. Exit code 0: done; 1: an error, described on standard error; 2: a wrong command line.
// For diff and compare 0: the same; 1: different; 2: an error or a wrong command line.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/command_line.h"
#include "cli/help.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "cli/words.h"
#include "core/base/text.h"
#include "etstream/byte_source.h"
#include "etstream/packed_file.h"
#include "present/print.h"

namespace etstream::cli {
namespace {

constexpr int kFailed = 1;
constexpr int kWrongCommandLine = 2;

int report(const std::string& name, const Error& error, int failed) {
  complain("{}: {}\n", name, one_line(full_message(error, option_words)));
  if (error.code == ErrorCode::kInterrupted) die_of_interrupt();
  return failed;
}

/// Closes standard output. Returns `done` if all that was printed has been written. Else, where outputs have
/// appeared, warns and returns `done`, as they stay; where there are none, reports and returns `failed`.
int close_standard_output(const std::string& name, int done, int failed) {
  errno = 0;
  const bool failed_before = std::ferror(stdout) != 0;
  if (std::fclose(stdout) == 0 && !failed_before) return done;
  const std::string reason = errno != 0 ? ": " + std::generic_category().message(errno) : "";
  Error error{ErrorCode::kIo, "cannot write standard output" + reason};
  if (!outputs_have_appeared()) return report(name, error, failed);
  warn(std::move(error));
  return done;
}

/// Takes the words after "--" from the command line of a subcommand that runs another command: they belong to
/// that command.
std::vector<std::string> take_command(std::vector<std::string>& arguments) {
  if (arguments.empty() || (arguments.front() != "run" && arguments.front() != "profile")) return {};
  const auto mark = std::find(arguments.begin(), arguments.end(), "--");
  if (mark == arguments.end()) return {};
  std::vector<std::string> command(mark + 1, arguments.end());
  arguments.erase(mark, arguments.end());
  return command;
}

using Words = std::vector<std::string>;

/// Returns the subcommand that the arguments chose; the whole command if that alone has words left over.
const CLI::App& chosen_by_arguments(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  if (parsed.empty() || (parsed.front()->remaining().empty() && !app.remaining().empty())) return app;
  return *parsed.front();
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

Error wrong(std::string words) { return did_you_mean(std::move(words), ""); }

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
  // A slip in the name of an option leaves another one missing.
  const Words left = command.remaining();
  const bool is_slip = is_a<CLI::RequiredError>(error) && std::ranges::any_of(left, is_option);
  if (!left.empty() && (is_a<CLI::ExtrasError>(error) || is_slip)) return describe_extra(command, left);
  const bool is_count = is_a<CLI::ArgumentMismatch>(error);
  return wrong(is_count ? describe_count(command, error.what()) : error.what());
}

/// Returns the problem of the command line, and the advice: "etstream: there is no subcommand 'verfy'; did
/// you mean verify?". `app` has parsed `arguments`, with the error `error`; `chosen` has the words after
/// "--".
std::string describe(const CLI::App& app, const CLI::ParseError& error, const Words& arguments,
                     const ChosenCommand& chosen) {
  const CLI::App& command = chosen_by_arguments(app);
  const std::string name = command.get_parent() == nullptr ? "" : " " + command.get_name();
  const bool is_misplaced = is_a<CLI::ExtrasError>(error) || is_a<CLI::RequiredError>(error);
  const bool runs_another = command.get_option_no_throw(kOtherCommand) != nullptr;
  if (runs_another && is_misplaced) {
    const std::string words = misplaced_command(command, arguments, chosen);
    if (!words.empty()) return text("etstream{}: {}", name, words);
  }
  Error found = describe_within(command, error);
  if (found.advice.empty()) found.advice = {"see etstream help", name == " help" ? "" : name};
  return text("etstream{}: {}", name, full_message(found));
}

int run_command(int argc, char** argv) {
  occupy_standard_descriptors();
  set_default_threads(0);
  std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  ChosenCommand chosen;
  chosen.command = take_command(arguments);
  const auto app = make_command_line(chosen);
  try {
    // The order is reversed, as CLI11 expects it.
    app->parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::Success& asked) {  // for help, or the version
    std::ostringstream answer;
    const int done = app->exit(asked, answer);
    print_to(stdout, answer.str());
    return close_standard_output("etstream", done, kFailed);
  } catch (const CLI::ParseError& error) {
    complain("{}\n", one_line(describe(*app, error, arguments, chosen)));
    return kWrongCommandLine;
  }
  if (app->get_subcommands().empty()) {
    print_to(stderr, app->help());
    return kWrongCommandLine;
  }
  const std::string name = "etstream " + app->get_subcommands().front()->get_name();
  const InputRecord inputs;
  const auto done = chosen.work();
  if (!done) return report(name, done.error(), chosen.failed);
  return close_standard_output(name, chosen.done, chosen.failed);
}

}  // namespace
}  // namespace etstream::cli

int main(int argc, char** argv) {
  try {
    return etstream::cli::run_command(argc, argv);
  } catch (const std::exception& error) {
    etstream::complain("etstream: {}\n", error.what());
    return etstream::cli::kFailed;
  }
}
