// SPDX-License-Identifier: BSD-3-Clause
#include "flatbuffer/json/json_reader.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "test_errors.h"
#include "test_sources.h"

namespace etstream::json_stream_test {
namespace {

constexpr std::size_t kWindow = std::size_t{64} << 10;  // what is read at a time

/// Spells events as words: `{ "a": 1i 0.5d "s" [ true null ] }`.
class SpellingHandler final : public JsonHandler {
 public:
  Result<void> on(const JsonEvent& event) override {
    using Kind = JsonEvent::Kind;
    if (!spelled_.empty()) spelled_ += ' ';
    switch (event.kind) {
      case Kind::kNull:
        spelled_ += "null";
        break;
      case Kind::kBool:
        spelled_ += event.boolean ? "true" : "false";
        break;
      case Kind::kInteger:
        spelled_ += std::to_string(event.integer) + "i";
        break;
      case Kind::kUnsigned:
        spelled_ += std::to_string(event.large) + "u";
        break;
      case Kind::kDouble:
        spelled_ += std::to_string(event.number) + "d";
        break;
      case Kind::kString:
        spelled_ += '"' + std::string(event.string) + '"';
        break;
      case Kind::kKey:
        spelled_ += '"' + std::string(event.string) + "\":";
        break;
      case Kind::kObject:
        spelled_ += '{';
        break;
      case Kind::kEndObject:
        spelled_ += '}';
        break;
      case Kind::kArray:
        spelled_ += '[';
        break;
      case Kind::kEndArray:
        spelled_ += ']';
        break;
    }
    return {};
  }

  [[nodiscard]] const std::string& spelled() const { return spelled_; }

 private:
  std::string spelled_;
};

/// Refuses the integer 13, wherever it comes.
class SuperstitiousHandler final : public JsonHandler {
 public:
  Result<void> on(const JsonEvent& event) override {
    ++events_;
    if (event.kind != JsonEvent::Kind::kInteger || event.integer != 13) return {};
    return Error{ErrorCode::kUnsupported, "thirteen"};
  }
  [[nodiscard]] int events() const { return events_; }

 private:
  int events_ = 0;
};

Result<void> parse(const ByteSource& source) {
  SpellingHandler handler;
  return parse_json(source, handler);
}

Result<void> parse(std::string_view json) { return parse(source_of(json)); }

/// Returns the events of a source, or its error.
std::string events_of(std::string_view json) {
  SpellingHandler handler;
  const auto parsed = parse_json(source_of(json), handler);
  return parsed ? handler.spelled() : "error: " + parsed.error().message;
}

TEST_CASE("JSON comes as its events") {
  struct Row {
    std::string json;
    std::string events;
  };
  const std::vector<Row> rows = {
      {"null", "null"},
      {"7", "7i"},
      {" \t\r\n[ ] \n", "[ ]"},
      {R"({"a": {"b": [true, false, null]}, "": []})", R"({ "a": { "b": [ true false null ] } "": [ ] })"},
      {R"({"a": 1, "a": 2})", R"({ "a": 1i "a": 2i })"},
      {"[0, -0, 7, -7, 1234567890123]", "[ 0i 0i 7i -7i 1234567890123i ]"},
      {"[9223372036854775807, -9223372036854775808]", "[ 9223372036854775807i -9223372036854775808i ]"},
      {"[9223372036854775808, 18446744073709551615]", "[ 9223372036854775808u 18446744073709551615u ]"},
      {"[1.0, -0.0, 1e2, -2.5E-1, 1E+1]", "[ 1.000000d -0.000000d 100.000000d -0.250000d 10.000000d ]"},
      {R"(["", "a b", "\"\\\/\b\f\n\r\t"])", "[ \"\" \"a b\" \"\"\\/\b\f\n\r\t\" ]"},
      {R"(["\u00e9\u6a21\ud83d\ude00", "é模😀"])", R"([ "é模😀" "é模😀" ])"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.json);
    CHECK(events_of(row.json) == row.events);
  }
}

TEST_CASE("what is not JSON is corrupt, with its line") {
  struct Row {
    std::string json;
    int line;
  };
  const std::vector<Row> rows = {
      {"", 1},
      {"[1,\n\n", 2},
      {"[1,]", 1},
      {"[1]\n\nx", 3},
      {"{a: 1}", 1},
      {"['a']", 1},
      {"[\nNaN]", 2},
      {"[01]", 1},
      {"// no\n[]", 1},
      {R"(["\x"])", 1},
      {R"(["\ud800"])", 1},
      {"]", 1},
      {std::string(kWindow - 1, ' ') + "\nx", 2},
  };
  for (const Row& row : rows) {
    CAPTURE(row.json);
    CHECK(error_of(parse(row.json)) ==
          containing("kCorrupt: memory: line " + std::to_string(row.line) + ": not JSON: "));
  }
}

TEST_CASE("an error about a long string is short") {
  const auto parsed = parse("[\"" + std::string(100'000, 's') + "\x01\"]");
  REQUIRE_FALSE(parsed);
  CHECK(parsed.error().message.size() < 1000);
}

TEST_CASE("an error holds no bytes that could garble a terminal, or are not UTF-8") {
  CHECK(error_of(parse("[\"\xff\"]")) != containing("\xff"));
  CHECK(error_of(parse("[\"\x7f")) != containing("\x7f"));
}

TEST_CASE("an integer over 64 bits is an error, not a rounded number") {
  for (const std::string integer :
       {"18446744073709551616", "-9223372036854775809", "123456789012345678901234567890"}) {
    CAPTURE(integer);
    CHECK(error_of(parse("[" + std::string(integer) + "]")) ==
          "kCorrupt: memory: line 1: an integer does not fit 64 bits");
  }
}

TEST_CASE("a number beyond a double is said to be that, in our own words") {
  CHECK(code_of(parse("[1e400]")) == "kCorrupt");
  CHECK(error_of(parse("[1e400]")) != containing("not JSON"));
  CHECK(error_of(parse("[1e400]")) != containing("json.exception"));
}

TEST_CASE("nesting is bounded at 64") {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  CHECK(parse(nested(64)));
  CHECK(error_of(parse(nested(65))) == "kCorrupt: memory: line 1: nested deeper than 64");
  CHECK(code_of(parse(std::string(1'000'000, '['))) == "kCorrupt");
  std::string objects;
  for (int i = 0; i < 65; ++i) objects += "{\"a\":";
  CHECK(error_of(parse(objects)) == "kCorrupt: memory: line 1: nested deeper than 64");
  SpellingHandler handler;
  CHECK(parse_json(source_of(nested(65)), handler, 65));
  CHECK(error_of(parse_json(source_of(nested(66)), handler, 65)) ==
        "kCorrupt: memory: line 1: nested deeper than 65");
  std::string siblings = "[[]";
  for (int i = 0; i < 100; ++i) siblings += ",[]";
  CHECK(parse(siblings + "]"));
}

TEST_CASE("text is the same wherever the windows of reading end") {
  for (std::size_t before = kWindow - 8; before < kWindow + 3; ++before) {
    CAPTURE(before);
    const std::string spaces(before, ' ');
    CHECK(events_of(spaces + R"(["模\n", -12, true])") == "[ \"模\n\" -12i true ]");
  }
}

TEST_CASE("a long string arrives whole") {
  const std::string string(3 * kWindow + 5, 's');
  CHECK((events_of("[\"" + string + "\"]") == "[ \"" + string + "\" ]"));
}

TEST_CASE("a string, a number or white space over 16 MiB is an error, and memory does not follow it") {
  const ByteSource quote = source_of("\"");
  for (const char filling : {'s', ' '}) {
    CAPTURE(filling);
    const ByteSource endless = repeated(filling, std::uint64_t{1} << 40);
    const ByteSource json = filling == 's' ? ByteSource::concatenation({quote, endless}).value() : endless;
    CHECK(error_of(parse(json)) ==
          exactly("kCorrupt: " + json.name() +
                  ": line 1: a string, a number or white space is longer than 16.0 MiB"));
  }
  const ByteSource most = repeated(' ', std::uint64_t{16} << 20);
  CHECK(parse(ByteSource::concatenation({most, source_of("[]"), repeated(' ', kWindow)}).value()));
}

TEST_CASE("a handler's error ends the parsing and gets the file and line") {
  SuperstitiousHandler handler;
  const auto parsed = parse_json(source_of("[1,\n2,\n 13, 4]"), handler);
  CHECK(error_of(parsed) == "kUnsupported: memory: line 3: thirteen");
  CHECK(handler.events() == 4);
}

TEST_CASE("a handler's error about a number that ends its line has that line") {
  SuperstitiousHandler handler;
  CHECK(error_of(parse_json(source_of("[\n13\n]"), handler)) == "kUnsupported: memory: line 2: thirteen");
}

TEST_CASE("a read error passes through, wherever it comes") {
  const std::string text = "[1]" + std::string(3 * kWindow, ' ');
  const ByteSource good = source_of(text);
  CHECK(parse(good));
  for (std::size_t at = 0; at < 3; ++at) {
    CAPTURE(at);
    const ByteSource bad = failing(kWindow, 0);
    const ByteSource json = ByteSource::concatenation({good.slice(0, at * kWindow).value(), bad}).value();
    CHECK(code_of(parse(json)) == "kIo");
    CHECK(error_of(parse(json)) == containing("the disk is on fire"));
  }
}

}  // namespace
}  // namespace etstream::json_stream_test
