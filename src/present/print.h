// SPDX-License-Identifier: BSD-3-Clause
//
// What people read on a terminal. All of it is printed here, so that no name, path or message that came from
// a file can have the terminal do something.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include "core/base/text.h"

namespace etstream {

/// `words` with control characters but line ends, and bytes that are not UTF-8, as \xNN.
[[nodiscard]] std::string for_terminal(std::string_view words);

/// The same, with line ends too: a message that holds a name with one is still one line.
[[nodiscard]] std::string one_line(std::string_view words);

/// Prints `words` as for_terminal() has them.
void print_to(std::FILE* file, std::string_view words);

/// Prints text(words, arguments...) as for_terminal() has it, on standard output.
template <class... Arguments>
void say(Template<Arguments...> words, const Arguments&... arguments) {
  print_to(stdout, text(words, arguments...));
}

/// The same on standard error.
template <class... Arguments>
void complain(Template<Arguments...> words, const Arguments&... arguments) {
  print_to(stderr, text(words, arguments...));
}

}  // namespace etstream
