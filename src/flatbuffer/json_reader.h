// SPDX-License-Identifier: BSD-3-Clause
//
// JsonReader: takes a JSON document value by value, in order, for code that knows what it should say.
//
//   std::vector<std::int64_t> numbers;
//   const auto read = read_json(file, ErrorCode::kCorrupt, [&](JsonReader& json) {
//     return json.elements([&]() -> Result<void> {
//       ETSTREAM_ASSIGN(const JsonTape::Value number, json.take(JsonEvent::Kind::kInteger));
//       numbers.push_back(number.integer);
//       return {};
//     });
//   });
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "base/text.h"
#include "base/try.h"
#include "etstream/byte_source.h"
#include "etstream/result.h"
#include "flatbuffer/json_stream.h"
#include "flatbuffer/json_tape.h"

namespace etstream {

/// Errors, besides those of what is called for members and elements: one of the code that the reader was made
/// with, "expected an array, found a string".
class JsonReader {
 public:
  using Kind = JsonTape::Kind;

  JsonReader(const JsonTape& tape, ErrorCode code) : tape_(tape), code_(code) {}

  /// The value that comes next.
  [[nodiscard]] JsonTape::Value next() const { return tape_.at(next_); }
  /// Takes it, whatever it is.
  JsonTape::Value take() {
    const JsonTape::Value value = next();
    last_ = next_;
    next_ = value.end;
    return value;
  }
  [[nodiscard]] Result<JsonTape::Value> take(Kind expected) {
    const JsonTape::Value value = take();
    return value.kind == expected ? Result<JsonTape::Value>(value) : unexpected(value, name_of(expected));
  }

  /// Takes an object: calls `read` with each key, and it takes the value.
  template <class Read>
  [[nodiscard]] Result<void> members(const Read& read) {
    const JsonTape::Place begin = next_;
    ETSTREAM_ASSIGN(const JsonTape::Value object, take(Kind::kObject));
    for (next_ = object.first; next_ != object.end;) {
      const JsonTape::Key key = tape_.key_at(next_);
      last_ = next_;
      next_ = key.value;
      ETSTREAM_TRY(read(key.name));
    }
    last_ = begin;
    return {};
  }
  /// The same where no key may come twice.
  template <class Read>
  [[nodiscard]] Result<void> different_members(const Read& read) {
    std::set<std::string_view> keys;
    return members([&](std::string_view key) {
      return keys.insert(key).second ? read(key) : error(text("{} comes twice", quote(key)));
    });
  }
  /// Takes an array: calls `read` to take each element.
  template <class Read>
  [[nodiscard]] Result<void> elements(const Read& read) {
    const JsonTape::Place begin = next_;
    ETSTREAM_ASSIGN(const JsonTape::Value array, take(Kind::kArray));
    for (next_ = array.first; next_ != array.end;) ETSTREAM_TRY(read());
    last_ = begin;
    return {};
  }

  [[nodiscard]] Error error(std::string_view message) const { return Error{code_, std::string(message)}; }
  [[nodiscard]] Error unexpected(const JsonTape::Value& value, std::string_view expected) const {
    return error(text("expected {}, found {}", expected, name_of(value.kind)));
  }
  /// Of the value or key that was taken last, or whose members and elements were.
  [[nodiscard]] JsonTape::Place last() const noexcept { return last_; }

 private:
  const JsonTape& tape_;
  const ErrorCode code_;
  JsonTape::Place next_ = JsonTape::kRoot;
  JsonTape::Place last_ = JsonTape::kRoot;
};

/// Has `read` take the value of `json`. What it finds wrong is an error of `code`. Memory: about that of the
/// text. Errors: those of parse_json; those of `read`, with the file's name and the line put before them.
template <class Read>
[[nodiscard]] Result<void> read_json(const ByteSource& json, ErrorCode code, const Read& read) {
  return without_exceptions([&]() -> Result<void> {
    ETSTREAM_ASSIGN(const JsonTape tape, JsonTape::parse(json, {}, kDeepestJson));
    JsonReader reader(tape, code);
    const Result<void> done = read(reader);
    return done ? done : tape.at_line(reader.last(), done.error());
  });
}

}  // namespace etstream
