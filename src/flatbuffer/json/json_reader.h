// SPDX-License-Identifier: BSD-3-Clause
//
// parse_json(): JSON as a stream of events, never a document in memory. JsonTape: a document in about the
// memory of its text, to be read in any order. JsonReader: takes the document value by value, in order, for
// code that knows what to expect.
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

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/byte_source.h"
#include "etstream/result.h"

namespace etstream {

struct JsonEvent {
  enum class Kind {
    kNull,
    kBool,
    kInteger,   // a number without point or exponent; fits 64 bits signed
    kUnsigned,  // one that only fits 64 bits unsigned
    kDouble,    // any other number
    kString,
    kKey,
    kObject,  // begins
    kEndObject,
    kArray,  // begins
    kEndArray,
  };
  Kind kind = Kind::kNull;
  bool boolean = false;
  std::int64_t integer = 0;
  std::uint64_t large = 0;  // of kUnsigned
  double number = 0;
  std::string_view string = {};  // of kString and kKey, UTF-8; valid during the call
};

/// Returns what messages call an event: "a string", "the end of the array".
[[nodiscard]] std::string_view name_of(JsonEvent::Kind kind) noexcept;

class JsonHandler {
 public:
  JsonHandler() = default;
  JsonHandler(const JsonHandler&) = delete;
  JsonHandler& operator=(const JsonHandler&) = delete;
  virtual ~JsonHandler() = default;

  /// Takes the next event; an error ends the parsing. Events come well nested, keys only in objects.
  [[nodiscard]] virtual Result<void> on(const JsonEvent& event) = 0;
};

inline constexpr int kDeepestJson = 64;

enum class JsonSyntax {
  kStandard,  // RFC 8259
  kFlatc,     // also words without quotes, which come as strings: flatc writes keys so, and -inf and nan
};

/// Parses all of `source`. Memory: 64 KiB and the longest string. Errors: the handler's, with the file's
/// name and the line put before them; kCorrupt for what is not JSON (RFC 8259, valid UTF-8), nesting
/// deeper than `deepest`, a string, a number or white space longer than 16 MiB, and integers over 64 bits;
/// the source's own.
[[nodiscard]] Result<void> parse_json(const ByteSource& source, JsonHandler& handler,
                                      int deepest = kDeepestJson, JsonSyntax syntax = JsonSyntax::kStandard);

/// A value, or a key and its value, is known by its place on the tape. Const use from several threads is
/// safe.
class JsonTape {
 public:
  using Place = std::uint64_t;
  static constexpr Place kRoot = 0;

  using Kind = JsonEvent::Kind;
  /// Its string lives as long as the tape.
  struct Value : JsonEvent {
    Place first = 0;  // of an object or array: where its content begins
    Place end = 0;    // of the value
  };
  /// Its name lives as long as the tape.
  struct Key {
    std::string_view name;
    Place value = 0;
  };

  JsonTape(JsonTape&&) = default;
  JsonTape& operator=(JsonTape&&) = default;

  /// Errors: those of parse_json.
  [[nodiscard]] static Result<JsonTape> parse(const ByteSource& json, int deepest = kDeepestJson,
                                              JsonSyntax syntax = JsonSyntax::kStandard);

  [[nodiscard]] Value at(Place place) const;
  /// Returns the key at `place`, which is in an object and before its end.
  [[nodiscard]] Key key_at(Place place) const;
  /// Makes an error "FILE: line N: MESSAGE" of `error`, which is about the value or key at `place`. Reads the
  /// text again to find the line.
  [[nodiscard]] Error at_line(Place place, const Error& error) const;
  /// Makes the same with the path that leads there: "FILE: line N: PATH: MESSAGE".
  [[nodiscard]] Error error_at(Place place, const Error& error) const;

 private:
  friend class JsonTapeWriter;

  JsonTape(ByteSource json, int deepest, JsonSyntax syntax)
      : json_(std::move(json)), deepest_(deepest), syntax_(syntax) {}
  // These read what is at a place, and move the place behind it.
  std::uint64_t take_number(Place& place) const;
  std::string_view take_string(Place& place) const;
  template <class T>
  T take_eight_bytes(Place& place) const;
  /// Returns the path to a place: "execution_plan[0].values".
  std::string path_to(Place place) const;

  ByteSource json_;
  int deepest_;
  JsonSyntax syntax_;
  std::map<std::string, std::uint64_t, std::less<>> numbers_;  // of keys
  std::vector<std::string_view> names_;                        // by number, from 1
  std::vector<std::uint8_t> bytes_;
};

/// Reads values in order. A value of another kind than expected is an error of the code that the reader was
/// made with: "expected an array, found a string". Other errors are those of the functions that take members
/// and elements.
class JsonReader {
 public:
  using Kind = JsonTape::Kind;

  JsonReader(const JsonTape& tape, ErrorCode code) : tape_(tape), code_(code) {}

  /// Returns the next value, and does not take it.
  [[nodiscard]] JsonTape::Value next() const { return tape_.at(next_); }
  /// Takes the next value, whatever it is.
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
  /// Takes an object in which no key may come twice.
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
  /// Returns the place of the value or key that was taken last, or whose members and elements were.
  [[nodiscard]] JsonTape::Place last() const noexcept { return last_; }

 private:
  const JsonTape& tape_;
  const ErrorCode code_;
  JsonTape::Place next_ = JsonTape::kRoot;
  JsonTape::Place last_ = JsonTape::kRoot;
};

/// Calls `read` to take the value of `json`. Errors that `read` finds are of `code`. Memory: about that of
/// the text. Errors: those of parse_json; those of `read`, with the file's name and the line put before them.
template <class Read>
[[nodiscard]] Result<void> read_json(const ByteSource& json, ErrorCode code, const Read& read) {
  return without_exceptions([&]() -> Result<void> {
    ETSTREAM_ASSIGN(const JsonTape tape, JsonTape::parse(json));
    JsonReader reader(tape, code);
    const Result<void> done = read(reader);
    return done ? done : tape.at_line(reader.last(), done.error());
  });
}

}  // namespace etstream
