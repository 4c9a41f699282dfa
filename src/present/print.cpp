// SPDX-License-Identifier: BSD-3-Clause
#include "present/print.h"

#include <cstddef>

namespace etstream {
namespace {

bool leaves_out_reports = false;

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

void leave_out_reports() noexcept { leaves_out_reports = true; }

void print_to(std::FILE* file, std::string_view words) {
  if (file == stdout && leaves_out_reports) return;
  const std::string out = for_terminal(words);
  std::fwrite(out.data(), 1, out.size(), file);
}

}  // namespace etstream
