// SPDX-License-Identifier: BSD-3-Clause
#include "base/print.h"

#include <cstdarg>
#include <cstddef>

#include "base/text.h"

namespace etstream {
namespace {

void print_formatted(std::FILE* file, const char* format, std::va_list arguments) {
  std::va_list again;
  va_copy(again, arguments);
  const int size = std::vsnprintf(nullptr, 0, format, arguments);
  std::string words(size > 0 ? static_cast<std::size_t>(size) : 0, '\0');
  std::vsnprintf(words.data(), words.size() + 1, format, again);
  va_end(again);
  print_to(file, words);
}

}  // namespace

std::string for_terminal(std::string_view words) {
  std::string out;
  out.reserve(words.size());
  for (std::size_t end = 0; (end = words.find('\n')) != std::string_view::npos;
       words.remove_prefix(end + 1)) {
    append_printable(out, words.substr(0, end));
    out += '\n';
  }
  append_printable(out, words);
  return out;
}

std::string one_line(std::string_view words) {
  std::string out;
  append_printable(out, words);
  return out;
}

void print_to(std::FILE* file, std::string_view words) {
  const std::string out = for_terminal(words);
  std::fwrite(out.data(), 1, out.size(), file);
}

void say(const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  print_formatted(stdout, format, arguments);
  va_end(arguments);
}

void complain(const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  print_formatted(stderr, format, arguments);
  va_end(arguments);
}

}  // namespace etstream
