// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/program.h"

#include <doctest/doctest.h>

#include <string>

#include "test_errors.h"
#include "test_sources.h"

namespace etstream::program_metadata_test {
namespace {

std::string encoded(std::string_view value) {
  const auto parsed = parse_metadata_value(value);
  REQUIRE_MESSAGE(parsed, parsed.error().message);
  return text_of(encode(*parsed));
}

std::string eight(std::uint64_t bits) { return {reinterpret_cast<const char*>(&bits), sizeof(bits)}; }

TEST_CASE("values become the bytes that ExecuTorch's proposal has for them") {
  CHECK(encoded("8192") == eight(8192));
  CHECK(encoded("-1") == eight(~std::uint64_t{0}));
  CHECK(encoded("-9223372036854775808") == eight(std::uint64_t{1} << 63));
  CHECK(encoded("0.5") == eight(0x3fe0000000000000));
  CHECK(encoded("1e-5") == eight(0x3ee4f8b588e368f1));
  CHECK(encoded("[1, 2,-1]") == eight(1) + eight(2) + eight(~std::uint64_t{0}));
  CHECK(encoded("[ 1 ,2 ]") == eight(1) + eight(2));
  CHECK(encoded("[]").empty());
  // Digits behind the text are no part of it.
  CHECK(encoded(std::string_view("12345").substr(0, 3)) == eight(123));
  CHECK(encoded(std::string_view("0.55").substr(0, 3)) == eight(0x3fe0000000000000));
}

TEST_CASE("all else is text, and so is what is in quotes") {
  for (const std::string& word :
       {std::string("Llama"), std::string("nan"), std::string("-"), std::string("1.2.3"), std::string("[a]"),
        std::string("[1"), std::string("1]"), std::string("\""), std::string("\"a"), std::string("a\""),
        std::string()}) {
    CHECK(encoded(word) == word);
  }
  CHECK(encoded("\"3\"") == "3");
  CHECK(encoded("\"\"").empty());
}

TEST_CASE("an integer that does not fit is refused") {
  CHECK(error_of(parse_metadata_value("9223372036854775808")) == containing("kInvalidArgument: metadata: "));
  CHECK(error_of(parse_metadata_value("[1,9223372036854775808]")) ==
        containing("kInvalidArgument: metadata: "));
}

TEST_CASE("values are shown as far as their bytes tell") {
  const auto shown = [](const std::string& bytes) {
    const auto text = describe(MetadataEntry{"key", source_of(bytes)});
    REQUIRE(text);
    return *text;
  };
  CHECK(shown("Llama") == "\"Llama\"");
  CHECK(shown("") == "\"\"");
  CHECK(shown(eight(8192)) == "8192");
  CHECK(shown(eight(1) + eight(2)) == "16 bytes");
  CHECK(shown("a b\n\t") == "\"a b\n\t\"");
  CHECK(shown("\x1f") == "1 byte");
  CHECK(shown(std::string(200, 'x')) == "\"" + std::string(200, 'x') + "\"");
  CHECK(shown(std::string(197, 'x') + "\U0001F600") == "\"" + std::string(197, 'x') + "\"...");
  CHECK(shown(std::string(196, 'x') + "\xff" + "abcd") == "201 bytes");
  CHECK(shown(std::string(201, 'x')) == "\"" + std::string(200, 'x') + "\"...");
  CHECK(shown(std::string(199, 'x') + "\u20ac") == "\"" + std::string(199, 'x') + "\"...");
}

}  // namespace
}  // namespace etstream::program_metadata_test
