// SPDX-License-Identifier: BSD-3-Clause
#include "formats/torch/pickle.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "test_sources.h"

namespace etstream::pickle_test {
namespace {

using std::string_literals::operator""s;

/// Returns the part between the protocol and the end.
template <class Put>
std::string written(const Put& put) {
  PickleWriter writer;
  put(writer);
  const std::string out = text_of(std::move(writer).finish());
  REQUIRE(out.starts_with("\x80\2"));
  REQUIRE(out.ends_with("."));
  return out.substr(2, out.size() - 3);
}

TEST_CASE("integers are written in the shortest of Python's forms") {
  struct Row {
    std::uint64_t number;
    std::string bytes;
  };
  for (const Row& row :
       {Row{0, "K\0"s}, Row{255, "K\xff"}, Row{256, "M\0\1"s}, Row{65535, "M\xff\xff"},
        Row{65536, "J\0\0\1\0"s}, Row{0x7fffffff, "J\xff\xff\xff\x7f"},
        Row{0x80000000, "\x8a\5\0\0\0\x80\0"s}, Row{0xffffffff, "\x8a\5\xff\xff\xff\xff\0"s},
        Row{0x7fffffffff, "\x8a\5\xff\xff\xff\xff\x7f"}, Row{0x8000000000, "\x8a\6\0\0\0\0\x80\0"s},
        Row{std::numeric_limits<std::int64_t>::max(), "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f"}}) {
    CAPTURE(row.number);
    CHECK(written([&](PickleWriter& out) { out.put_integer(row.number); }) == row.bytes);
  }
}

TEST_CASE("tuples of up to three numbers have an instruction of their own, and empty ones are not kept") {
  const auto tuple = [](const std::vector<std::uint64_t>& numbers) {
    return written([&](PickleWriter& out) { out.put_tuple(numbers); });
  };
  CHECK(tuple({}) == ")");
  CHECK(tuple({1}) == "K\1\x85q\0"s);
  CHECK(tuple({1, 2}) == "K\1K\2\x86q\0"s);
  CHECK(tuple({1, 2, 3}) == "K\1K\2K\3\x87q\0"s);
  CHECK(tuple({1, 2, 3, 4}) == "(K\1K\2K\3K\4tq\0"s);
}

TEST_CASE("strings that are one object, and globals, are written once and then recalled") {
  CHECK(written([](PickleWriter& out) {
          out.put_string("a");
          out.put_string("a");
        }) == "X\1\0\0\0aq\0X\1\0\0\0aq\1"s);
  CHECK(written([](PickleWriter& out) {
          out.put_shared_string("a");
          out.put_global("m", "n");
          out.put_shared_string("a");
          out.put_global("m", "n");
        }) == "X\1\0\0\0aq\0cm\nn\nq\1h\0h\1"s);
}

TEST_CASE("numbers over 255 of what is kept take four bytes") {
  const std::string out = written([](PickleWriter& writer) {
    for (int i = 0; i < 256; ++i) writer.put_string("");
    writer.put_shared_string("a");
    writer.put_shared_string("a");
  });
  CHECK(
      out.ends_with("q\xff"
                    "X\1\0\0\0ar\0\1\0\0j\0\1\0\0"s));
}

}  // namespace

}  // namespace etstream::pickle_test
