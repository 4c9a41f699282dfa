// SPDX-License-Identifier: BSD-3-Clause
//
// Words from and for people: sizes that they write, and output on a terminal. All of it is printed here, so
// that no name, path or message from a file can control the terminal.
#pragma once

#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <string_view>

#include "core/base/text.h"
#include "etstream/result.h"

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

/// The bounds of the sizes that an option takes, in bytes.
struct SizeBounds {
  std::uint64_t least = 0;
  std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
};

/// Returns the bytes of a size: a whole number and optionally a unit, with or without spaces between them.
/// Units are powers of 1024, in large or small letters: "4096", "4096B", "4K", "4KB", "4 KiB", up to E.
/// Error: kInvalidArgument for a size that is invalid or out of bounds, with a suggestion.
[[nodiscard]] Result<std::uint64_t> parse_size(std::string_view words, SizeBounds bounds = {});

}  // namespace etstream
