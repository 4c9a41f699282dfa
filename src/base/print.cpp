// SPDX-License-Identifier: BSD-3-Clause
#include "base/print.h"

#include <cstddef>

namespace etstream {

std::string for_terminal(std::string_view words) {
  std::string out;
  out.reserve(words.size());
  while (!words.empty()) {
    const std::size_t line_end = words.find('\n');
    append_printable(out, words.substr(0, line_end));
    if (line_end == std::string_view::npos) break;
    out += '\n';
    words.remove_prefix(line_end + 1);
  }
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

}  // namespace etstream
