// SPDX-License-Identifier: BSD-3-Clause
//
// The value of a report: JSON as its text, which is put together as a report is described:
//
//   ETSTREAM_TO_JSON(FilePart, part, part.name, part.size);
//
//   Json report = {{"file", path}, {"parts", found.parts}, {"alignment", found.alignment}};
//   if (is_split) report.add("shards", shards);
//   print_json(report);
//
// It has each value once, as text, so that it takes less memory than a tree.
#pragma once

#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>

namespace etstream {

/// Nothing, or the text of a value without white space. An object leaves out members that are nothing.
class Json {
 public:
  struct Member;

  Json() = default;
  Json(std::initializer_list<Member> members);
  /// Takes a truth value, a number, text, a list, or what a function to_json(Json&, const T&) beside the type
  /// describes. An empty optional is nothing; a number that JSON lacks is null. Text keeps bytes that are
  /// not UTF-8, as a path may have.
  template <class T>
  Json(const T& value) {  // NOLINT(google-explicit-constructor): values become members without a word
    if constexpr (std::same_as<T, bool>) {
      text_ = value ? "true" : "false";
    } else if constexpr (std::integral<T>) {
      text_ = std::to_string(value);
    } else if constexpr (std::floating_point<T>) {
      set_number(value);
    } else if constexpr (std::convertible_to<const T&, std::string_view>) {
      append_quoted(value);
    } else if constexpr (requires { value.has_value(); }) {
      if (value) *this = *value;
    } else if constexpr (requires { value.begin(); }) {
      text_ = "[]";
      for (const typename T::value_type& each : value) push_back(each);
    } else {
      to_json(*this, value);
    }
  }
  /// Makes a list of these values.
  template <class... Values>
  [[nodiscard]] static Json list(const Values&... values) {
    Json out;
    out.text_ = "[]";
    (out.push_back(values), ...);
    return out;
  }
  /// Makes an object of values by the last word of each in a list: "part.name, part.data.size(),
  /// hex(part.hash)".
  [[nodiscard]] static Json members(std::string_view names, std::initializer_list<Json> values);
  /// Takes the text of a value as it is.
  [[nodiscard]] static Json of_text(std::string_view text) {
    Json out;
    out.text_ = text;
    return out;
  }

  /// Adds a member to an object; nothing becomes one.
  void add(std::string_view name, const Json& value);
  /// Adds the members of another object.
  void update(const Json& other);
  /// Adds an item to a list; nothing becomes one.
  void push_back(const Json& item);

  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  void set_number(double number);
  void append_quoted(std::string_view words);
  /// Makes room for what comes next before the end, which becomes `end`.
  void extend(char begin, char end);

  std::string text_;
};

struct Json::Member {
  std::string_view name;
  Json value;
};

/// Makes an object of members of structs under their own names: {{"name", part.name}, {"size", part.size}} of
/// (part.name, part.size).
#define ETSTREAM_MEMBERS(...) ::etstream::Json::members(#__VA_ARGS__, {__VA_ARGS__})

/// Defines to_json() for a struct, called `item` in the list of its members.
#define ETSTREAM_TO_JSON(Type, item, ...)                                                   \
  static void to_json(Json& out, const Type& item) { out = ETSTREAM_MEMBERS(__VA_ARGS__); } \
  static_assert(true)

/// Returns a value, or nothing for 0, an empty text or an empty list.
template <class T>
[[nodiscard]] Json unless_empty(const T& value) {
  if constexpr (requires { value.empty(); }) {
    return value.empty() ? Json() : Json(value);
  } else {
    return value == T() ? Json() : Json(value);
  }
}

/// Returns the text of JSON in lines, in which `depth` values are around it. Bytes that are not UTF-8 become
/// U+FFFD. It has no control characters, which JSON allows in strings, but on which a terminal acts.
[[nodiscard]] std::string json_text(const Json& report, std::size_t depth = 0);
void print_json(const Json& report);
/// Returns a number, or a text for one that JSON lacks: "nan", "inf".
[[nodiscard]] Json number_or_text(double number);
/// Returns `page`, one of pages.h, with `json` as its data: one file that needs no other, nor a network.
/// Texts in `json` stay data, whatever they are.
[[nodiscard]] std::string filled_page(std::string_view page, std::string_view json);

}  // namespace etstream
