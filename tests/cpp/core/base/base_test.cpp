// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/base/checked.h"
#include "core/base/names.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "test_errors.h"
#include "test_sources.h"

namespace etstream::base_test {
namespace {

constexpr std::uint64_t kLargest = std::numeric_limits<std::uint64_t>::max();

TEST_CASE("a sum is checked") {
  CHECK(checked_add(kLargest - 1, std::uint64_t{1}) == kLargest);
  CHECK(checked_add(kLargest, std::uint64_t{1}) == std::nullopt);
  CHECK(checked_add(kLargest, kLargest) == std::nullopt);
  CHECK(checked_add<std::uint8_t>(200, 55) == std::uint8_t{255});
  CHECK(checked_add<std::uint8_t>(200, 56) == std::nullopt);
}

TEST_CASE("a product is checked") {
  CHECK(checked_multiply(std::uint64_t{0}, kLargest) == 0U);
  CHECK(checked_multiply(kLargest, std::uint64_t{0}) == 0U);
  CHECK(checked_multiply(kLargest, std::uint64_t{1}) == kLargest);
  CHECK(checked_multiply(kLargest / 2, std::uint64_t{2}) == kLargest - 1);
  CHECK(checked_multiply(kLargest / 2 + 1, std::uint64_t{2}) == std::nullopt);
  CHECK(checked_multiply(std::uint64_t{1} << 32, std::uint64_t{1} << 32) == std::nullopt);
  CHECK(checked_multiply<std::uint8_t>(16, 16) == std::nullopt);
}

TEST_CASE("a range fits if it ends inside, also where its end overflows") {
  CHECK(range_fits(0, 0, 0));
  CHECK(range_fits(10, 0, 10));
  CHECK(range_fits(3, 7, 10));
  CHECK(range_fits(0, kLargest, kLargest));
  CHECK_FALSE(range_fits(0, 11, 10));
  CHECK_FALSE(range_fits(11, 0, 10));
  CHECK_FALSE(range_fits(3, 8, 10));
  CHECK_FALSE(range_fits(3, kLargest, 10));
  CHECK_FALSE(range_fits(kLargest, kLargest, 10));
}

TEST_CASE("UTF-8 is told from other bytes, up to the first and the last character of each length") {
  struct Row {
    std::string_view bytes;
    char32_t code;
  };
  const std::vector<Row> rows{{"\x7f", 0x7f},
                              {"\xc2\x80", 0x80},
                              {"\xdf\xbf", 0x7ff},
                              {"\xe0\xa0\x80", 0x800},
                              {"\xed\x9f\xbf", 0xd7ff},
                              {"\xee\x80\x80", 0xe000},
                              {"\xef\xbf\xbf", 0xffff},
                              {"\xf0\x90\x80\x80", 0x10000},
                              {"\xf4\x8f\xbf\xbf", 0x10ffff}};
  for (const Row& row : rows) {
    CAPTURE(row.code);
    const Character found = character_at(row.bytes);
    CHECK(found.code == row.code);
    CHECK(found.size == row.bytes.size());
    CHECK(is_utf8(std::string(row.bytes) + "x"));
  }
  for (const char* const bytes :
       {"\x80", "\xbf", "\xc1\xbf", "\xc2", "\xc2\x7f", "\xc2\xc0", "\xe0\xa0", "\xe0\x9f\xbf",
        "\xe1\x80\xc0", "\xed\xa0\x80", "\xed\xbf\xbf", "\xf0\x90\x80", "\xf0\x8f\xbf\xbf", "\xf1\x80\x80x",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80"}) {
    CAPTURE(quote(bytes));
    CHECK(character_at(bytes).size == 0);
    CHECK_FALSE(is_utf8(std::string("x") + bytes));
  }
}

TEST_CASE("controls are told from their neighbours") {
  for (const char32_t code : {0x1fU, 0x7fU, 0x80U, 0x9fU, 0x61cU, 0x200eU, 0x200fU, 0x2028U, 0x202dU, 0x202eU,
                              0x2066U, 0x2068U, 0x2069U}) {
    CHECK(is_control(code));
  }
  for (const char32_t code :
       {0x20U, 0x7eU, 0xa0U, 0x61bU, 0x61dU, 0x200dU, 0x2010U, 0x2027U, 0x202fU, 0x2065U, 0x206aU}) {
    CHECK_FALSE(is_control(code));
  }
}

TEST_CASE("capital letters become small ones") { CHECK(in_small_letters("@AMZ[`az{") == "@amz[`az{"); }

TEST_CASE("a pattern matches names as in a shell") {
  struct Row {
    const char* pattern;
    std::vector<std::string_view> matched;
    std::vector<std::string_view> others;
  };
  const std::vector<Row> rows{{"", {""}, {"a"}},
                              {"*", {"", "a", "ab"}, {}},
                              {"a", {"a"}, {"", "b", "ab", "ba"}},
                              {"?", {"a", "?"}, {"", "ab"}},
                              {"a?c", {"abc", "a?c"}, {"ac", "abd", "abbc"}},
                              {"*.bias", {".bias", "a.bias", "a.bias.bias"}, {"bias", "a.bias.b"}},
                              {"a**", {"a", "abc"}, {"", "b"}},
                              {"a*b*c", {"abc", "aXbXbXc"}, {"ac", "abcd", "acb"}}};
  for (const Row& row : rows) {
    CAPTURE(row.pattern);
    for (const std::string_view name : row.matched) CHECK(matches_glob(row.pattern, name));
    for (const std::string_view name : row.others) CHECK_FALSE(matches_glob(row.pattern, name));
  }
}

TEST_CASE("the first name in order that comes twice is found") {
  using Names = std::vector<std::string>;
  CHECK(first_repeated(Names{}) == std::nullopt);
  CHECK(first_repeated(Names{"a", "b", "c"}) == std::nullopt);
  CHECK(first_repeated(Names{"x", "x"}) == "x");
  CHECK(first_repeated(Names{"a", "x", "c", "x"}) == "x");
  CHECK(first_repeated(Names{"d", "b", "a", "c", "e", "b", "c", "e", "d"}) == "b");
}

TEST_CASE("a limit is the least whole number of KiB or MiB") {
  constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
  const std::pair<std::uint64_t, const char*> rows[] = {
      {0, "0K"},       {1, "1K"},        {1024, "1K"},        {1025, "2K"},
      {kMiB, "1024K"}, {kMiB + 1, "2M"}, {513 * kMiB, "513M"}};
  for (const auto& [size, limit] : rows) CHECK(limit_for(size) == limit);
}

TEST_CASE("a quoted word shows its controls, which could drive a terminal or turn text around") {
  const std::pair<std::string, std::string> rows[] = {{"", ""},
                                                      {"model.pte", "model.pte"},
                                                      {"größe 模型", "größe 模型"},
                                                      {"\x1b[2J", "\\x1b[2J"},
                                                      {{"a\0b\n\x7f", 5}, "a\\x00b\\x0a\\x7f"}};
  for (const auto& [word, shown] : rows) CHECK(quote(word) == "'" + shown + "'");
  // U+009B is CSI, the sequence that ESC [ begins.
  for (const char* const control : {"\xc2\x9b", "\xd8\x9c", "\xe2\x80\x8e", "\xe2\x80\xa8", "\xe2\x81\xa6"}) {
    CHECK(exactly(quote(std::string("a") + control + "b")) != containing(control));
  }
  CHECK(quote("\xd8\x9d") == "'\xd8\x9d'");
}

TEST_CASE("a name that is a path leads nowhere") {
  CHECK(path_in_folder("out", "x.pte").value() == "out/x.pte");
  CHECK(path_in_folder("out/", "x.pte").value() == "out/x.pte");
  CHECK(path_in_folder("", "..x").value() == "..x");
  CHECK(path_in_folder("", std::string(255, 'a')).value() == std::string(255, 'a'));
  for (const std::string& name :
       {std::string(), std::string("."), std::string(".."), std::string("../x"), std::string("/x"),
        std::string("a/b"), std::string("a\\b"), std::string("a\0", 2), std::string(256, 'a')}) {
    CHECK(error_of(path_in_folder("out", name)) ==
          containing("kInvalidArgument: expected the name of a file in 'out', and no path, found '"));
  }
}

TEST_CASE("a quoted word is cut after 200 bytes, between characters") {
  CHECK(quote(std::string(200, 'x')) == "'" + std::string(200, 'x') + "'");
  CHECK(quote(std::string(201, 'x')) == "'" + std::string(200, 'x') + "...'");
  const std::string cut = quote("x" + std::string(200, 'y') + "é");
  CHECK(cut == "'x" + std::string(199, 'y') + "...'");
  std::string wide;  // 3 bytes a character, so that byte 200 is inside one
  for (int i = 0; i < 100; ++i) wide += "模";
  CHECK(quote(wide) == "'" + wide.substr(0, 198) + "...'");
  CHECK(quote("模" + std::string(198, 'x')) == "'模" + std::string(197, 'x') + "...'");
}

TEST_CASE("names are listed up to ten, and the others counted") {
  std::vector<std::string> names;
  CHECK(names_text(names) == "none");
  names = {"a", "b\n"};
  CHECK(names_text(names) == "'a', 'b\\x0a'");
  names.resize(10, "c");
  CHECK(names_text(names) == "'a', 'b\\x0a', 'c', 'c', 'c', 'c', 'c', 'c', 'c', 'c'");
  names.resize(13, "d");
  CHECK(exactly(names_text(names)) == containing("'c' and 3 more"));
  CHECK(names_text(std::vector{1, 2}, [](int i) { return i == 1 ? "one" : "two"; }) == "'one', 'two'");
}

TEST_CASE("a count has its noun in the right number") {
  CHECK(counted(0, "test case") == "0 test cases");
  CHECK(counted(1, "test case") == "1 test case");
  CHECK(counted(kLargest, "byte") == "18446744073709551615 bytes");
}

TEST_CASE("a size is exact where it is small and short where it is large") {
  CHECK(readable_size(0) == "0 bytes");
  CHECK(readable_size(1) == "1 byte");
  CHECK(readable_size(1023) == "1023 bytes");
  CHECK(readable_size(1024) == "1.0 KiB");
  CHECK(readable_size(1536) == "1.5 KiB");
  CHECK(readable_size(1023 * 1024 + 512) == "1023.5 KiB");
  CHECK(readable_size(std::uint64_t{1} << 20) == "1.0 MiB");
  CHECK(readable_size(std::uint64_t{3} << 20) == "3.0 MiB");
  CHECK(readable_size(std::uint64_t{5} << 30) == "5.0 GiB");
  CHECK(readable_size(kLargest) == "16.0 EiB");
}

// A reader of the message would take the first offset for that of the error.
constexpr const char* kMisleading = "run: offset 12: model.pte";

TEST_CASE("an error at a place in a file has the file and the offset, whatever the file's name") {
  const Error error = unexpected(ErrorCode::kCorrupt, {kMisleading, 52, "header"}, "24, found {}", 8);
  CHECK(error.message == "run: offset 12: model.pte: offset 52: header: expected 24, found 8");
  CHECK(error.file == kMisleading);
  CHECK(error.offset == 52);
  CHECK(error.system_code == 0);
  CHECK(error_in(ErrorCode::kCorrupt, kMisleading, "odd").system_code == 0);
  const Error nowhere = make_error(ErrorCode::kCorrupt, "run: offset 12: odd");
  CHECK(!nowhere.file);
  CHECK(!nowhere.offset);
}

TEST_CASE("a failed allocation becomes an error") {
  const auto exhausted = without_exceptions([]() -> Result<int> { throw std::bad_alloc(); });
  CHECK(code_of(exhausted) == "kOutOfMemory");
  const auto oversized = without_exceptions([]() -> Result<int> { throw std::length_error("vector"); });
  CHECK(code_of(oversized) == "kOutOfMemory");
  CHECK(without_exceptions([]() -> Result<int> { return 4; }).value() == 4);
}

}  // namespace
}  // namespace etstream::base_test
