// SPDX-License-Identifier: BSD-3-Clause
#include "present/print.h"

#include <doctest/doctest.h>

#include <limits>
#include <string>

namespace etstream::print_test {
namespace {

constexpr std::uint64_t kLargest = std::numeric_limits<std::uint64_t>::max();

std::string refusal(std::string_view words, SizeBounds bounds = {}) {
  const auto size = parse_size(words, bounds);
  REQUIRE_FALSE(size.has_value());
  CHECK(size.error().code == ErrorCode::kInvalidArgument);
  return full_message(size.error());
}

// Spellings, and words that are no size, are in tests/cli/cases/takes_sizes_as_people_write_them.sh.
TEST_CASE("a size is a number with a unit of 1024") {
  std::uint64_t unit = 1;
  for (const char letter : std::string_view("BKMGTPE")) {
    CHECK(parse_size(std::string("3") + letter).value() == 3 * unit);
    unit *= 1024;
  }
  CHECK(parse_size("0").value() == 0U);
  CHECK(parse_size("18446744073709551615").value() == kLargest);
  CHECK(parse_size("15E").value() == std::uint64_t{15} << 60);
}

TEST_CASE("what is no size is refused with what is one") {
  for (const char* const words : {"", " ", "much", "-5", "+5", " 4K", "K", ".5G", "\xff"}) {
    CAPTURE(words);
    CHECK(refusal(words).starts_with("expected a size such as 4G, 512M or 16K, found '"));
  }
  for (const char* const words : {"4X", "4KX", "4BB", "4KBB", "4BiB", "4 K ", "0x10", "1e9", "4-K", "4K4"}) {
    CAPTURE(words);
    CHECK(refusal(words).ends_with("'; units are K, M, G, T, P and E"));
  }
  CHECK(refusal("1.5G").ends_with("found '1.5G'; a smaller unit has a whole number"));
}

TEST_CASE("a size that is out of bounds is refused with the bound") {
  CHECK(refusal("16E") == "expected at most 18446744073709551615B, found '16E'");
  CHECK(refusal("18446744073709551616") ==
        "expected at most 18446744073709551615B, found '18446744073709551616'");
  CHECK(refusal("99999999999999999999K").starts_with("expected at most"));
  const SizeBounds bounds{.least = 1 << 20, .most = 1 << 30};
  CHECK(parse_size("1M", bounds).value() == 1U << 20);
  CHECK(parse_size("1G", bounds).value() == 1U << 30);
  CHECK(refusal("1025M", bounds) == "expected at most 1G, found '1025M'");
  CHECK(refusal("1023K", bounds) == "expected at least 1M, found '1023K'");
  CHECK(refusal("0", bounds) == "expected at least 1M, found '0'");
  CHECK(refusal("1K", {.least = 1025}) == "expected at least 1025B, found '1K'");
  CHECK(refusal("1B", {.least = 1024}) == "expected at least 1K, found '1B'");
  CHECK(refusal("1B", {.least = std::uint64_t{1} << 60}) == "expected at least 1E, found '1B'");
}

TEST_CASE("a number without a unit that is too small is said to be bytes") {
  const SizeBounds bounds{.least = 1 << 20};
  CHECK(refusal("4", bounds) == "expected at least 1M, found '4', which is bytes; 4G is 4 GiB");
  CHECK(refusal("4096", bounds) == "expected at least 1M, found '4096', which is bytes; 4096M is 4096 MiB");
  CHECK(refusal("1", bounds).ends_with("; 1G is 1 GiB"));
  CHECK(refusal("1023", bounds).ends_with("; 1023G is 1023 GiB"));
  CHECK(refusal("1024", bounds).ends_with("; 1024M is 1024 MiB"));
  CHECK(refusal("4B", bounds) == "expected at least 1M, found '4B'");
}

}  // namespace
}  // namespace etstream::print_test
