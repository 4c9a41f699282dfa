// SPDX-License-Identifier: BSD-3-Clause
//
// Output for people on a terminal. All of it is printed here, so that no name, path or message from a file
// can control the terminal.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include "core/base/text.h"

namespace etstream {

/// Returns `words` with control characters, except line ends, and bytes that are not UTF-8 as \xNN.
[[nodiscard]] std::string for_terminal(std::string_view words);

/// Returns the same, but with line ends as \xNN too: a message with a name that has one is still one line.
[[nodiscard]] std::string one_line(std::string_view words);

/// Leaves out all that would go to standard output from now on, as the bytes of an output are there.
void leave_out_reports() noexcept;

/// Prints `words` as for_terminal() returns them.
void print_to(std::FILE* file, std::string_view words);

/// Prints text(words, arguments...) as for_terminal() returns it, on standard output.
template <class... Arguments>
void say(Template<Arguments...> words, const Arguments&... arguments) {
  print_to(stdout, text(words, arguments...));
}

/// Does the same on standard error.
template <class... Arguments>
void complain(Template<Arguments...> words, const Arguments&... arguments) {
  print_to(stderr, text(words, arguments...));
}

}  // namespace etstream
