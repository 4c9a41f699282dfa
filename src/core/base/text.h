// SPDX-License-Identifier: BSD-3-Clause
//
// Messages for people.
#pragma once

#include <fmt/core.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "etstream/result.h"

namespace etstream {

/// The words of a message, with a {} in the place of each argument; {{ and }} are braces. A template that
/// does not fit its arguments does not compile.
template <class... Arguments>
using Template = fmt::format_string<const Arguments&...>;

[[nodiscard]] std::string formatted(fmt::string_view words, fmt::format_args arguments);

/// Fills a template: `text("offset {} of {}", 8, path)`
template <class... Arguments>
[[nodiscard]] std::string text(Template<Arguments...> words, const Arguments&... arguments) {
  return formatted(words, fmt::make_format_args(arguments...));
}

template <class... Arguments>
[[nodiscard]] Error make_error(ErrorCode code, Template<Arguments...> words, const Arguments&... arguments) {
  return Error{code, text(words, arguments...)};
}

/// Makes an error about a file: "model.pte: there is no method 'decode'".
template <class... Arguments>
[[nodiscard]] Error error_in(ErrorCode code, std::string_view file, Template<Arguments...> words,
                             const Arguments&... arguments) {
  return Error{code, text("{}: {}", file, text(words, arguments...)), 0, std::string(file)};
}

/// The words of an interface for each term, by term.
using AdviceWords = std::array<std::pair<AdviceTerm, std::string_view>,
                               static_cast<std::size_t>(AdviceTerm::kWriteToDescriptor) + 1>;
[[nodiscard]] constexpr bool has_each_term(const AdviceWords& words) {
  std::size_t number = 0;
  for (const auto& [term, said] : words) {
    if (static_cast<std::size_t>(term) != number++ || said.empty()) return false;
  }
  return true;
}

/// Returns the error with this advice.
[[nodiscard]] Error with_advice(Error error, Advice advice);

/// Returns the same error with "WHERE: " before its message, unless `where` is empty.
[[nodiscard]] Error about(Error error, std::string_view where);

/// Returns about(error, "model.json: WHERE"), as an error about that file if it is about none.
[[nodiscard]] Error about(Error error, std::string_view file, std::string_view where);

/// A place in a file that breaks the rules of its format.
struct FilePosition {
  std::string_view file;
  std::uint64_t offset = 0;    // in bytes
  std::string_view part = {};  // of the file, such as "extended header"
};

/// Makes the error "model.gguf: offset 52: arrays are more than 8 deep", or for a part of a file "model.pte:
/// offset 52: header: ...".
template <class... Arguments>
[[nodiscard]] Error error_at(ErrorCode code, const FilePosition& position, Template<Arguments...> words,
                             const Arguments&... arguments) {
  return Error{code,
               text("{}: offset {}: {}{}{}", position.file, position.offset, position.part,
                    position.part.empty() ? "" : ": ", text(words, arguments...)),
               0, std::string(position.file), position.offset};
}

/// Makes the error "model.pte: offset 52: expected a length of at least 24, found 8" from the words after
/// "expected".
template <class... Arguments>
[[nodiscard]] Error unexpected(ErrorCode code, const FilePosition& position, Template<Arguments...> words,
                               const Arguments&... arguments) {
  return error_at(code, position, "expected {}", text(words, arguments...));
}

/// Returns the first 200 bytes, or some less so that no character is cut.
[[nodiscard]] std::string_view beginning_of(std::string_view words);

/// Returns `words` with control characters, and bytes that are not UTF-8, as \xNN, cut after 200 bytes. So
/// text from a file can't garble a terminal.
[[nodiscard]] std::string printable(std::string_view words);

/// Appends all of `words` as printable() has it, without a cut.
void append_printable(std::string& out, std::string_view words);

[[nodiscard]] bool is_utf8(std::string_view words);

/// A character at the beginning of a string: how many bytes of UTF-8 it takes, and its number.
struct Character {
  std::size_t size = 0;
  char32_t code = 0;
};

/// Returns the character that `rest` begins with. Its size is 0 if `rest` is empty or does not begin with
/// UTF-8.
[[nodiscard]] Character character_at(std::string_view rest);

/// Returns whether a terminal acts on the character instead of showing it: control characters, also those
/// beyond ASCII, and characters that reverse the order of the text or break its lines.
[[nodiscard]] bool is_control(char32_t code) noexcept;

/// Returns what printable() gives, in single quotes.
[[nodiscard]] std::string quote(std::string_view word);

/// Returns the first ten names of a range, quoted, and the number of the others: "'a', 'b'", "'a', ..., 'j'
/// and 5 more"; "none" if there are none. `name_of` takes an element and returns its name.
template <class Names, class NameOf = std::identity>
[[nodiscard]] std::string names_text(const Names& names, NameOf name_of = {}) {
  constexpr std::size_t kMostNames = 10;
  std::string out;
  std::size_t found = 0;
  for (const auto& each : names) {
    if (++found <= kMostNames) out += (found == 1 ? "" : ", ") + quote(std::invoke(name_of, each));
  }
  if (found == 0) return "none";
  return found <= kMostNames ? out : text("{} and {} more", out, found - kMostNames);
}

/// Returns the shortest decimal that reads back as `number`: "0.25", "1e-07", "inf".
[[nodiscard]] std::string exact_text(double number);

/// Counts things for messages: "1 test case", "2 test cases".
[[nodiscard]] std::string counted(std::uint64_t n, std::string_view noun);

/// Returns a size for people, which is exact if it is small: "812 bytes", "98.3 MiB".
[[nodiscard]] std::string readable_size(std::uint64_t bytes);

/// Returns `words` with ASCII's capital letters as small ones.
[[nodiscard]] std::string in_small_letters(std::string_view words);

/// Returns the least whole number of KiB or MiB that `bytes` fit in, as limits are given: "26K", "513M".
inline std::string limit_for(std::uint64_t bytes) {
  const bool is_small = bytes <= std::uint64_t{1} << 20;
  const std::uint64_t unit = std::uint64_t{1} << (is_small ? 10 : 20);
  return text("{}{}", bytes / unit + (bytes % unit == 0 ? 0 : 1), is_small ? 'K' : 'M');
}

}  // namespace etstream
