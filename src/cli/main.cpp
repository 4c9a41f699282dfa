// SPDX-License-Identifier: BSD-3-Clause
//
// The etstream command. Exit code 0: done; 1: an error, described on standard error; 2: a wrong command line.
// For diff and compare 0: the same; 1: different; 2: an error or a wrong command line.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/option_words.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "cli/wrong_command_line.h"
#include "etstream/input_record.h"
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
