// SPDX-License-Identifier: BSD-3-Clause
#include "core/io/read_pieces.h"

#include <doctest/doctest.h>

#include <vector>

namespace etstream::find_keys_test {
namespace {

ByteSource source_with(std::uint64_t before, const std::string& words, std::uint64_t behind) {
  const auto bytes = std::as_bytes(std::span(words));
  return ByteSource::concatenation({ByteSource::zeros(before),
                                    ByteSource::owned({bytes.begin(), bytes.end()}),
                                    ByteSource::zeros(behind)})
      .value();
}

std::set<std::string> found_in(const ByteSource& source, const std::set<std::string>& keys) {
  std::set<std::string> found;
  const auto done = find_keys(source, keys, found);
  REQUIRE(done);
  return found;
}

TEST_CASE("keys are found wherever they are, also across the pieces that are read") {
  const std::set<std::string> keys = {"weight", "weights", "bias", "none"};
  constexpr std::uint64_t kPiece = std::uint64_t{1} << 20;
  for (const std::uint64_t before : {std::uint64_t{0}, kPiece - 7, kPiece - 3, kPiece, 3 * kPiece - 1}) {
    CAPTURE(before);
    CHECK(found_in(source_with(before, "weights", 10), keys) == std::set<std::string>{"weight", "weights"});
    CHECK(found_in(source_with(before, "bias", 0), keys) == std::set<std::string>{"bias"});
    CHECK(found_in(source_with(before, "bia", 3), keys).empty());
  }
  CHECK(found_in(ByteSource(), keys).empty());
  CHECK(found_in(source_with(0, "any", 0), {""}) == std::set<std::string>{""});
}

}  // namespace
}  // namespace etstream::find_keys_test
