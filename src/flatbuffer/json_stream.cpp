// SPDX-License-Identifier: BSD-3-Clause
#include "flatbuffer/json_stream.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/try.h"

namespace etstream {
namespace {

constexpr std::size_t kWindowSize = std::size_t{64} << 10;
constexpr std::uint64_t kLongestToken = std::uint64_t{16} << 20;

/// The characters of a source, read a window at a time. A failed read ends them early.
class Characters {
 public:
  explicit Characters(const ByteSource& source) : source_(source), window_(kWindowSize) { fill(); }

  bool at_end() const { return next_ == filled_; }
  char current() const { return static_cast<char>(window_[next_]); }
  void advance() {
    line_ += after_newline_ ? 1 : 0;
    after_newline_ = current() == '\n';
    ++since_event_;
    if (++next_ == filled_) fill();
  }

  /// Of the character that was taken last, from 1.
  std::uint64_t line() const { return line_; }
  void note_event() { since_event_ = 0; }
  const std::optional<Error>& error() const { return error_; }

 private:
  void fill() {
    next_ = filled_ = 0;
    if (since_event_ > kLongestToken) {
      error_ = make_error(ErrorCode::kCorrupt, "a string, a number or white space is longer than {}",
                          readable_size(kLongestToken));
      return;
    }
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(kWindowSize, source_.size() - offset_));
    auto read = source_.read_at(offset_, std::span(window_).first(n));
    if (!read) {
      error_ = std::move(read).error();
      return;
    }
    filled_ = n;
    offset_ += n;
  }

  const ByteSource& source_;
  std::vector<std::byte> window_;
  std::uint64_t offset_ = 0;
  std::size_t next_ = 0;
  std::size_t filled_ = 0;
  std::uint64_t line_ = 1;
  bool after_newline_ = false;
  std::uint64_t since_event_ = 0;
  std::optional<Error> error_;
};

/// Characters as the input iterator that the parser takes. The default is the end.
class CharacterIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = char;

  CharacterIterator() = default;
  explicit CharacterIterator(Characters& characters) : characters_(&characters) {}

  char operator*() const { return characters_->current(); }
  CharacterIterator& operator++() {
    characters_->advance();
    return *this;
  }
  bool operator==(const CharacterIterator& other) const { return at_end() == other.at_end(); }
  bool operator!=(const CharacterIterator& other) const { return !(*this == other); }

 private:
  bool at_end() const { return !characters_ || characters_->at_end(); }

  Characters* characters_ = nullptr;
};

/// The parser's callbacks, as events. Their names and types are the parser's.
class Adapter {
 public:
  Adapter(JsonHandler& handler, Characters& characters, int deepest)
      : handler_(handler), characters_(characters), deepest_(deepest) {}

  bool null() { return pass({.kind = JsonEvent::Kind::kNull}); }
  bool boolean(bool value) { return pass({.kind = JsonEvent::Kind::kBool, .boolean = value}); }
  bool number_integer(std::int64_t value) {
    return pass({.kind = JsonEvent::Kind::kInteger, .integer = value});
  }
  bool number_unsigned(std::uint64_t value) {
    if (std::in_range<std::int64_t>(value)) return number_integer(static_cast<std::int64_t>(value));
    return pass({.kind = JsonEvent::Kind::kUnsigned, .large = value});
  }
  bool number_float(double value, const std::string& spelled) {
    // The parser gives integers over 64 bits as floats.
    if (spelled.find_first_of(".eE") == std::string::npos) return too_wide();
    return pass({.kind = JsonEvent::Kind::kDouble, .number = value});
  }
  bool string(const std::string& value) { return pass({.kind = JsonEvent::Kind::kString, .string = value}); }
  bool key(const std::string& value) { return pass({.kind = JsonEvent::Kind::kKey, .string = value}); }
  bool binary(const std::vector<std::uint8_t>& /*value*/) { return false; }  // not in JSON text
  bool start_object(std::size_t /*size*/) { return open(JsonEvent::Kind::kObject); }
  bool end_object() { return close(JsonEvent::Kind::kEndObject); }
  bool start_array(std::size_t /*size*/) { return open(JsonEvent::Kind::kArray); }
  bool end_array() { return close(JsonEvent::Kind::kEndArray); }
  bool parse_error(std::size_t /*position*/, const std::string& /*last*/, const std::exception& error) {
    if (dynamic_cast<const nlohmann::json::out_of_range*>(&error)) {
      return fail(make_error(ErrorCode::kCorrupt, "a number is larger than a double can be"));
    }
    // "[json.exception...] parse error at line 1, column 2: WHAT": the line is put before it by others.
    const std::string_view whole = error.what();
    const auto colon = whole.find(": ");
    return fail(make_error(ErrorCode::kCorrupt, "not JSON: {}",
                           printable(colon == std::string_view::npos ? whole : whole.substr(colon + 2))));
  }

  const std::optional<Error>& error() const { return error_; }

 private:
  bool open(JsonEvent::Kind kind) {
    if (++depth_ > deepest_) {
      return fail(make_error(ErrorCode::kCorrupt, "nested deeper than {}", deepest_));
    }
    return pass({.kind = kind});
  }
  bool close(JsonEvent::Kind kind) {
    --depth_;
    return pass({.kind = kind});
  }
  bool pass(const JsonEvent& event) {
    characters_.note_event();
    auto taken = handler_.on(event);
    return taken.has_value() || fail(std::move(taken).error());
  }
  bool too_wide() { return fail(make_error(ErrorCode::kCorrupt, "an integer does not fit 64 bits")); }
  bool fail(Error error) {
    error_ = std::move(error);
    return false;
  }

  JsonHandler& handler_;
  Characters& characters_;
  const int deepest_;
  int depth_ = 0;
  std::optional<Error> error_;
};

}  // namespace

std::string_view name_of(JsonEvent::Kind kind) noexcept {
  switch (kind) {
    case JsonEvent::Kind::kNull:
      return "null";
    case JsonEvent::Kind::kBool:
      return "true or false";
    case JsonEvent::Kind::kInteger:
      return "an integer";
    case JsonEvent::Kind::kUnsigned:
      return "an integer over 63 bits";
    case JsonEvent::Kind::kDouble:
      return "a number with point or exponent";
    case JsonEvent::Kind::kString:
      return "a string";
    case JsonEvent::Kind::kKey:
      return "a key";
    case JsonEvent::Kind::kObject:
      return "an object";
    case JsonEvent::Kind::kEndObject:
      return "the end of the object";
    case JsonEvent::Kind::kArray:
      return "an array";
    case JsonEvent::Kind::kEndArray:
      return "the end of the array";
  }
  return "an event";
}

Result<void> parse_json(const ByteSource& source, JsonHandler& handler, int deepest) {
  return without_exceptions([&]() -> Result<void> {
    Characters characters(source);
    Adapter adapter(handler, characters, deepest);
    const bool parsed =
        nlohmann::json::sax_parse(CharacterIterator(characters), CharacterIterator(), &adapter);
    if (parsed && !characters.error()) return {};
    const std::optional<Error>& error = characters.error() ? characters.error() : adapter.error();
    return make_error(error->code, "{}: line {}: {}", source.name(), characters.line(), error->message);
  });
}

}  // namespace etstream
