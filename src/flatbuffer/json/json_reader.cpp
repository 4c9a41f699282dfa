// SPDX-License-Identifier: BSD-3-Clause
#include "flatbuffer/json/json_reader.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <istream>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <streambuf>
#include <string>
#include <utility>

#include "core/base/text.h"
#include "core/base/try.h"

namespace etstream {
namespace {

constexpr std::size_t kWindowSize = std::size_t{64} << 10;
constexpr std::uint64_t kLongestToken = std::uint64_t{16} << 20;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

/// The characters of a source, read a window at a time. A failed read ends them early.
class Characters final : public std::streambuf {
 public:
  Characters(const ByteSource& source, JsonSyntax syntax) : source_(source), syntax_(syntax) {}

  /// Returns the line of the character that was taken last, from 1.
  std::uint64_t line() const {
    const char* const last = gptr() == eback() ? gptr() : gptr() - 1;
    return line_ + static_cast<std::uint64_t>(std::count<const char*>(eback(), last, '\n'));
  }
  void note_event() { event_ = taken(); }
  const std::optional<Error>& error() const { return error_; }

 private:
  std::uint64_t taken() const { return begin_ + static_cast<std::uint64_t>(gptr() - eback()); }

  int_type underflow() override {
    const bool ends_line = gptr() != eback() && gptr()[-1] == '\n';
    line_ = line();
    begin_ = taken();
    setg(nullptr, nullptr, nullptr);
    window_.clear();
    while (window_.empty() && read_ < source_.size()) {
      if (const auto read = read_window(); !read) error_ = read.error();
      if (error_) return traits_type::eof();
    }
    if (window_.empty()) return traits_type::eof();
    line_ += ends_line ? 1 : 0;
    setg(window_.data(), window_.data(), window_.data() + window_.size());
    return traits_type::to_int_type(window_.front());
  }

  Result<void> read_window() {
    if (begin_ + word_.size() - event_ > kLongestToken) {
      return make_error(ErrorCode::kCorrupt, "a string, a number or white space is longer than {}",
                        readable_size(kLongestToken));
    }
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(kWindowSize, source_.size() - read_));
    std::string given(n, '\0');
    ETSTREAM_TRY(source_.read_at(read_, std::as_writable_bytes(std::span(given))));
    read_ += given.size();
    if (syntax_ == JsonSyntax::kStandard) {
      window_ = std::move(given);
    } else {
      std::ranges::for_each(given, [&](char c) { add(c); });
      if (read_ == source_.size()) add_word();
    }
    return {};
  }

  /// Adds a character to the window, or to the word that it may be a part of.
  void add(char c) {
    const bool is_of_word = is_letter(c) || (c >= '0' && c <= '9') || c == '.' || c == '+' || c == '-';
    if (!in_string_ && is_of_word) {
      word_ += c;
      return;
    }
    if (!word_.empty()) add_word();
    window_ += c;
    if (c == '"' && !is_escaped_) in_string_ = !in_string_;
    is_escaped_ = in_string_ && c == '\\' && !is_escaped_;
  }

  /// Adds the word to the window, between quotes unless it is a number or a word of JSON.
  void add_word() {
    const char first = word_[word_.starts_with('-') ? 1 : 0];
    const bool is_json = word_ == "true" || word_ == "false" || word_ == "null";
    window_ += is_letter(first) && !is_json ? text("\"{}\"", word_) : word_;
    word_.clear();
  }

  const ByteSource& source_;
  const JsonSyntax syntax_;
  std::uint64_t read_ = 0;  // bytes of the source
  std::string window_;
  std::string word_;  // that may go on in the next bytes
  bool in_string_ = false;
  bool is_escaped_ = false;
  std::uint64_t begin_ = 0;  // of the window, in all characters
  std::uint64_t line_ = 1;   // that the window begins in; of the last character where there is no window
  std::uint64_t event_ = 0;  // where the last event ended
  std::optional<Error> error_;
};

/// Turns the parser's callbacks into events. Their names and types are the parser's.
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
    if (spelled.find_first_of(".eE") == std::string::npos) {
      return fail(make_error(ErrorCode::kCorrupt, "an integer does not fit 64 bits"));
    }
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
    // The message is "[json.exception...] parse error at line 1, column 2: WHAT". parse_json() gives the line
    // itself.
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

// The first tag. A value on the tape begins with a byte: a tag, which is this number plus the value's kind,
// or an integer below this number, which is the whole value. A tag is followed by a byte for true and false;
// a number for an integer, with the sign in its lowest bit; 8 bytes for a double; the length as a number and
// the characters for a string; the end, in 8 bytes, and then keys and values for an object or array.
constexpr std::uint8_t kFirstTag = 0xf0;

// A key is a number from 1 on for its name, or this and the name. A file may have any number of keys: only
// the first ones get a number.
constexpr std::uint64_t kNoNumber = 0;
constexpr std::size_t kMostNumbered = 4096;

}  // namespace

std::string_view name_of(JsonEvent::Kind kind) noexcept {
  static constexpr std::string_view kNames[] = {"null",
                                                "true or false",
                                                "an integer",
                                                "an integer over 63 bits",
                                                "a number with point or exponent",
                                                "a string",
                                                "a key",
                                                "an object",
                                                "the end of the object",
                                                "an array",
                                                "the end of the array"};
  return kNames[static_cast<std::size_t>(kind)];
}

Result<void> parse_json(const ByteSource& source, JsonHandler& handler, int deepest, JsonSyntax syntax) {
  return without_exceptions([&]() -> Result<void> {
    Characters characters(source, syntax);
    Adapter adapter(handler, characters, deepest);
    std::istream stream(&characters);
    const bool parsed = nlohmann::json::sax_parse(stream, &adapter);
    if (parsed && !characters.error()) return {};
    const std::optional<Error>& error = characters.error() ? characters.error() : adapter.error();
    return about(*error, source.name(), text("line {}", characters.line()));
  });
}

/// Puts events on a tape.
class JsonTapeWriter final : public JsonHandler {
 public:
  struct Stop {
    JsonTape::Place place;
    const Error& error;
  };

  /// With `stop`, on() returns its error at its place.
  explicit JsonTapeWriter(JsonTape& tape, std::optional<Stop> stop = {}) : tape_(tape), stop_(stop) {}

  Result<void> on(const JsonEvent& event) override {
    using Kind = JsonEvent::Kind;
    const bool is_end = event.kind == Kind::kEndObject || event.kind == Kind::kEndArray;
    if (stop_ && bytes().size() == stop_->place && !is_end) return stop_->error;
    if (event.kind == Kind::kKey) {
      key(event.string);
      return {};
    }
    if (is_end) {
      const std::uint64_t end = bytes().size();
      std::memcpy(bytes().data() + open_.back(), &end, sizeof(end));
      open_.pop_back();
      return {};
    }
    const bool is_small = event.kind == Kind::kInteger && event.integer >= 0 && event.integer < kFirstTag;
    bytes().push_back(
        static_cast<std::uint8_t>(is_small ? event.integer : kFirstTag + static_cast<int>(event.kind)));
    if (event.kind == Kind::kBool) {
      bytes().push_back(event.boolean ? 1 : 0);
    } else if (event.kind == Kind::kInteger && !is_small) {
      const bool is_negative = event.integer < 0;
      const auto above_sign = static_cast<std::uint64_t>(event.integer) << 1;
      number(is_negative ? ~above_sign : above_sign);
    } else if (event.kind == Kind::kUnsigned) {
      number(event.large);
    } else if (event.kind == Kind::kDouble) {
      eight_bytes(event.number);
    } else if (event.kind == Kind::kString) {
      string(event.string);
    } else if (event.kind == Kind::kObject || event.kind == Kind::kArray) {
      open_.push_back(bytes().size());
      eight_bytes(std::uint64_t{0});
    }
    return {};
  }

 private:
  std::vector<std::uint8_t>& bytes() { return tape_.bytes_; }

  /// Writes a number, 7 bits a byte, the lowest first.
  void number(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes().push_back(static_cast<std::uint8_t>(value | 0x80));
    bytes().push_back(static_cast<std::uint8_t>(value));
  }

  template <class T>
  void eight_bytes(T value) {
    static_assert(sizeof(value) == 8);
    bytes().resize(bytes().size() + sizeof(value));
    std::memcpy(bytes().data() + bytes().size() - sizeof(value), &value, sizeof(value));
  }

  void string(std::string_view string) {
    number(string.size());
    bytes().insert(bytes().end(), string.begin(), string.end());
  }

  void key(std::string_view name) {
    auto known = tape_.numbers_.find(name);
    if (known == tape_.numbers_.end() && tape_.names_.size() < kMostNumbered) {
      known = tape_.numbers_.emplace(name, tape_.names_.size() + 1).first;
      tape_.names_.push_back(known->first);
    }
    number(known == tape_.numbers_.end() ? kNoNumber : known->second);
    if (known == tape_.numbers_.end()) string(name);
  }

  JsonTape& tape_;
  const std::optional<Stop> stop_;
  std::vector<JsonTape::Place> open_;  // where the ends of objects and arrays are to be written
};

Result<JsonTape> JsonTape::parse(const ByteSource& json, int deepest, JsonSyntax syntax) {
  return without_exceptions([&]() -> Result<JsonTape> {
    JsonTape tape(json, deepest, syntax);
    JsonTapeWriter writer(tape);
    ETSTREAM_TRY(parse_json(json, writer, deepest, syntax));
    return tape;
  });
}

std::uint64_t JsonTape::take_number(Place& place) const {
  std::uint64_t out = 0;
  for (unsigned shift = 0;; shift += 7) {
    const std::uint8_t byte = bytes_[place++];
    out |= std::uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return out;
  }
}

std::string_view JsonTape::take_string(Place& place) const {
  const std::uint64_t size = take_number(place);
  const std::string_view out(reinterpret_cast<const char*>(bytes_.data()) + place, size);
  place += size;
  return out;
}

template <class T>
T JsonTape::take_eight_bytes(Place& place) const {
  T out{};
  std::memcpy(&out, bytes_.data() + place, sizeof(out));
  place += sizeof(out);
  return out;
}

JsonTape::Value JsonTape::at(Place place) const {
  Value out;
  const std::uint8_t tag = bytes_[place++];
  out.kind = tag < kFirstTag ? Kind::kInteger : static_cast<Kind>(tag - kFirstTag);
  if (tag < kFirstTag) {
    out.integer = tag;
  } else if (out.kind == Kind::kBool) {
    out.boolean = bytes_[place++] != 0;
  } else if (out.kind == Kind::kInteger) {
    const std::uint64_t number = take_number(place);
    out.integer = static_cast<std::int64_t>((number & 1) != 0 ? ~(number >> 1) : number >> 1);
  } else if (out.kind == Kind::kUnsigned) {
    out.large = take_number(place);
  } else if (out.kind == Kind::kDouble) {
    out.number = take_eight_bytes<double>(place);
  } else if (out.kind == Kind::kString) {
    out.string = take_string(place);
  } else if (out.kind == Kind::kObject || out.kind == Kind::kArray) {
    out.end = take_eight_bytes<Place>(place);
    out.first = place;
    return out;
  }
  out.end = place;
  return out;
}

JsonTape::Key JsonTape::key_at(Place place) const {
  const std::uint64_t number = take_number(place);
  const std::string_view name = number == kNoNumber ? take_string(place) : names_[number - 1];
  return {name, place};
}

std::string JsonTape::path_to(Place place) const {
  std::string out;
  for (Place next = kRoot; next != place;) {
    const Value value = at(next);
    const bool is_object = value.kind == Kind::kObject;
    if ((!is_object && value.kind != Kind::kArray) || place >= value.end) break;
    Place entry = value.first;
    for (std::uint64_t i = 0;; ++i) {
      const Key key = is_object ? key_at(entry) : Key{{}, entry};
      const Place end = at(key.value).end;
      if (place < end) {
        if (is_object && entry == place) return out;  // a key is told of where its object is
        out += is_object ? text("{}{}", out.empty() ? "" : ".", printable(key.name)) : text("[{}]", i);
        next = key.value;
        break;
      }
      entry = end;
    }
  }
  return out;
}

Error JsonTape::at_line(Place place, const Error& error) const {
  JsonTape again(json_, deepest_, syntax_);
  JsonTapeWriter writer(again, JsonTapeWriter::Stop{place, error});
  auto found = parse_json(json_, writer, deepest_, syntax_);
  // A file that has changed may have no such line.
  if (found) return about(error, json_.name(), {});
  return std::move(found).error();
}

Error JsonTape::error_at(Place place, const Error& error) const {
  return at_line(place, about(error, path_to(place)));
}

}  // namespace etstream
