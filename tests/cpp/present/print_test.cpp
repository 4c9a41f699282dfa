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

TEST_CASE("a size that is out of bounds is refused with the bound") {
  CHECK(refusal("18446744073709551616") ==
        "expected at most 18446744073709551615B, found '18446744073709551616'");
  const SizeBounds bounds{.least = 1 << 20, .most = 1 << 30};
  CHECK(parse_size("1M", bounds).value() == 1U << 20);
  CHECK(parse_size("1G", bounds).value() == 1U << 30);
  CHECK(refusal("1025M", bounds) == "expected at most 1G, found '1025M'");
  CHECK(refusal("1023K", bounds) == "expected at least 1M, found '1023K'");
  CHECK(refusal("1K", {.least = 1025}) == "expected at least 1025B, found '1K'");
  CHECK(refusal("1B", {.least = std::uint64_t{1} << 60}) == "expected at least 1E, found '1B'");
}

}  // namespace
}  // namespace etstream::print_test
