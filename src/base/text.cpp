// SPDX-License-Identifier: BSD-3-Clause
// What fmt has in a library is compiled here, so that nobody needs that library.
#define FMT_HEADER_ONLY 1
#include "base/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>
#include <utility>

namespace etstream {
namespace {

/// How many bytes the UTF-8 character takes that `rest`, which is not empty, begins with; 0 if there is none.
std::size_t character_at(std::string_view rest) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(rest[i]); };
  if (byte(0) < 0x80) return 1;
  const std::size_t length = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (byte(0) < 0xc2 || byte(0) > 0xf4 || length > rest.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Longer than it need be, a surrogate, or beyond U+10FFFF.
  const bool is_invalid = (byte(0) == 0xe0 && byte(1) < 0xa0) || (byte(0) == 0xed && byte(1) > 0x9f) ||
                          (byte(0) == 0xf0 && byte(1) < 0x90) || (byte(0) == 0xf4 && byte(1) > 0x8f);
  return is_invalid ? 0 : length;
}

/// Whether a character is one, those beyond ASCII included.
bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  return first < 0x20 || first == 0x7f || (first == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0);
}

}  // namespace

std::string formatted(fmt::string_view words, fmt::format_args arguments) {
  return fmt::vformat(words, arguments);
}

void append_printable(std::string& out, std::string_view words) {
  while (!words.empty()) {
    const std::size_t length = character_at(words);
    const std::string_view character = words.substr(0, std::max<std::size_t>(length, 1));
    if (length > 0 && !is_control(character)) {
      out += character;
    } else {
      for (const char c : character) out += text("\\x{:02x}", static_cast<unsigned char>(c));
    }
    words.remove_prefix(character.size());
  }
}

std::string printable(std::string_view words) {
  constexpr std::size_t kLongest = 200;
  std::size_t end = 0;
  while (end < words.size()) {
    const std::size_t next = end + std::max<std::size_t>(character_at(words.substr(end)), 1);
    if (next > kLongest) break;
    end = next;
  }
  std::string out;
  append_printable(out, words.substr(0, end));
  return end < words.size() ? out + "..." : out;
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
    const std::size_t length = character_at(words);
    if (length == 0) return false;
    words.remove_prefix(length);
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

}  // namespace etstream
