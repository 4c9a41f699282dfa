// SPDX-License-Identifier: BSD-3-Clause
// The functions of fmt are compiled here, so that nobody needs its library.
#define FMT_HEADER_ONLY 1
#include "core/base/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>
#include <utility>

namespace etstream {

Character character_at(std::string_view rest) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(rest[i]); };
  if (rest.empty()) return {};
  if (byte(0) < 0x80) return {1, byte(0)};
  const std::size_t size = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (byte(0) < 0xc2 || byte(0) > 0xf4 || size > rest.size()) return {};
  char32_t code = byte(0) & (0x7fU >> size);
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3f);
  }
  // Refuses a character that is encoded in more bytes than it needs, a surrogate, or one beyond U+10FFFF.
  const bool is_long = (size == 3 && code < 0x800) || (size == 4 && code < 0x10000);
  if (is_long || (code >= 0xd800 && code < 0xe000) || code > 0x10ffff) return {};
  return {size, code};
}

bool is_control(char32_t code) noexcept {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x61c || code == 0x200e || code == 0x200f ||
         (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

std::string formatted(fmt::string_view words, fmt::format_args arguments) {
  return fmt::vformat(words, arguments);
}

void append_printable(std::string& out, std::string_view words) {
  while (!words.empty()) {
    const auto [size, code] = character_at(words);
    const std::string_view character = words.substr(0, std::max<std::size_t>(size, 1));
    if (size > 0 && !is_control(code)) {
      out += character;
    } else {
      for (const char c : character) out += text("\\x{:02x}", static_cast<unsigned char>(c));
    }
    words.remove_prefix(character.size());
  }
}

std::string_view beginning_of(std::string_view words) {
  constexpr std::size_t kLongest = 200;
  std::size_t end = 0;
  while (end < words.size()) {
    const std::size_t next = end + std::max<std::size_t>(character_at(words.substr(end)).size, 1);
    if (next > kLongest) break;
    end = next;
  }
  return words.substr(0, end);
}

std::string printable(std::string_view words) {
  const std::string_view shown = beginning_of(words);
  std::string out;
  append_printable(out, shown);
  return shown.size() < words.size() ? out + "..." : out;
}

Error with_advice(Error error, Advice advice) {
  error.advice = std::move(advice);
  return error;
}

Error about(Error error, std::string_view where) {
  if (!where.empty()) error.message = text("{}: {}", where, error.message);
  return error;
}

Error about(Error error, std::string_view file, std::string_view where) {
  if (!error.file) error.file = std::string(file);
  return about(about(std::move(error), where), file);
}

bool is_utf8(std::string_view words) {
  while (!words.empty()) {
    const std::size_t size = character_at(words).size;
    if (size == 0) return false;
    words.remove_prefix(size);
  }
  return true;
}

std::string quote(std::string_view word) { return text("'{}'", printable(word)); }

std::string exact_text(double number) {
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number).ptr;
  return {buffer.data(), end};
}

std::string counted(std::uint64_t n, std::string_view noun) {
  return text("{} {}{}", n, noun, n == 1 ? "" : "s");
}

std::string readable_size(std::uint64_t bytes) {
  constexpr std::array kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return counted(bytes, "byte");
  double amount = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  for (; amount >= 1024 && unit + 1 < kUnits.size(); ++unit) amount /= 1024;
  return text("{:.1f} {}", amount, kUnits[unit]);
}

std::string in_small_letters(std::string_view words) {
  std::string out(words);
  for (char& each : out) {
    if (each >= 'A' && each <= 'Z') each = static_cast<char>(each - 'A' + 'a');
  }
  return out;
}

}  // namespace etstream
