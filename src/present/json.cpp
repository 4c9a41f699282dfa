// SPDX-License-Identifier: BSD-3-Clause
#include "present/json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>

#include "core/base/text.h"

namespace etstream {
namespace {

/// Appends words with U+FFFD in the place of each byte that is not UTF-8.
void append_characters(std::string& out, std::string_view words) {
  while (!words.empty()) {
    const std::size_t size = character_at(words).size;
    out += size == 0 ? "\xef\xbf\xbd" : words.substr(0, size);
    words.remove_prefix(std::max<std::size_t>(size, 1));
  }
}

}  // namespace

Json::Json(std::initializer_list<Member> members) {
  text_ = "{}";
  for (const auto& [name, value] : members) add(name, value);
}

Json Json::members(std::string_view names, std::initializer_list<Json> values) {
  Json out = of_text("{}");
  for (const Json& value : values) {
    const std::size_t end = std::min(names.find(','), names.size());
    std::string_view name = names.substr(0, end);
    name = name.substr(0, name.find_last_not_of("()") + 1);
    out.add(name.substr(name.find_last_of(" .>(") + 1), value);
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  return out;
}

void Json::set_number(double number) {
  if (!std::isfinite(number)) {
    text_ = "null";
    return;
  }
  const double size = std::abs(number);
  const bool is_plain = size == 0 || (size >= 1e-4 && size < 1e15);
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number,
                                 is_plain ? std::chars_format::fixed : std::chars_format::scientific)
                       .ptr;
  text_.assign(buffer.data(), end);
  if (is_plain && text_.find('.') == std::string::npos) text_ += ".0";
}

void Json::append_quoted(std::string_view words) {
  constexpr std::string_view kEscaped = "\"\\\b\f\n\r\t";
  constexpr std::string_view kLetters = "\"\\bfnrt";
  text_ += '"';
  while (!words.empty()) {
    const auto [size, code] = character_at(words);
    const std::string_view character = words.substr(0, std::max<std::size_t>(size, 1));
    words.remove_prefix(character.size());
    if (const auto escape = kEscaped.find(character); escape != std::string_view::npos) {
      text_ += {'\\', kLetters[escape]};
    } else if (size != 0 && is_control(code)) {
      text_ += etstream::text("\\u{:04x}", static_cast<std::uint32_t>(code));
    } else {
      text_ += character;
    }
  }
  text_ += '"';
}

void Json::extend(char begin, char end) {
  if (text_.empty()) text_ = {begin, end};
  text_.pop_back();
  if (text_.size() > 1) text_ += ',';
}

void Json::add(std::string_view name, const Json& value) {
  if (value.text_.empty()) return;
  extend('{', '}');
  append_quoted(name);
  text_ += ':' + value.text_ + '}';
}

void Json::update(const Json& other) {
  if (other.text_.size() <= 2) return;
  extend('{', '}');
  text_.append(other.text_, 1);
}

void Json::push_back(const Json& item) {
  extend('[', ']');
  text_ += item.text_ + ']';
}

std::string json_text(const Json& report, std::size_t depth) {
  std::string out;
  const std::string& text = report.text();
  const auto start_line = [&] { out.append(1, '\n').append(2 * depth, ' '); };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      std::size_t end = i + 1;
      while (text[end] != '"') end += text[end] == '\\' ? 2U : 1U;
      append_characters(out, std::string_view(text).substr(i, end + 1 - i));
      i = end;
    } else if (c == ':') {
      out += ": ";
    } else if (c == ',') {
      out += c;
      start_line();
    } else if (c == '}' || c == ']') {
      --depth;
      if (text[i - 1] != '{' && text[i - 1] != '[') start_line();
      out += c;
    } else if (c == '{' || c == '[') {
      ++depth;
      out += c;
      if (text[i + 1] != '}' && text[i + 1] != ']') start_line();
    } else if (c > ' ') {
      out += c;
    }
  }
  return out;
}

void print_json(const Json& report) { std::printf("%s\n", json_text(report).c_str()); }

Json number_or_text(double number) { return std::isfinite(number) ? Json(number) : Json(exact_text(number)); }

std::string filled_page(std::string_view page, std::string_view json) {
  constexpr std::string_view kPlace = "PAGE DATA";
  const std::size_t place = page.find(kPlace);
  std::string out(page.substr(0, place));
  out.reserve(page.size() + json.size());
  // A '<' is only in strings. Unescaped, it could end the script that has the data.
  for (std::size_t end = json.find('<'); end != std::string_view::npos; end = json.find('<')) {
    append_characters(out, json.substr(0, end));
    out += "\\u003c";
    json.remove_prefix(end + 1);
  }
  append_characters(out, json);
  return out += page.substr(place + kPlace.size());
}

}  // namespace etstream
