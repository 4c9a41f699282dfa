// SPDX-License-Identifier: BSD-3-Clause
//
// The search for equal sources, which reads each once, whatever they have in common.
#include "core/layout/same_bytes.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "counted_bytes.h"
#include "test_errors.h"
#include "test_sources.h"

namespace etstream::same_bytes_test {
namespace {

constexpr std::size_t kSize = 1'000'000;
constexpr std::uint64_t kEnds = 8192;

/// Makes bytes of one size with the same ends. `at` is the place where they differ from the others, 0 for
/// nowhere.
std::shared_ptr<CountedBytes> bytes(std::size_t at = 0, char other = 'o') {
  std::string out(kSize, 'x');
  if (at != 0) out[at] = other;
  return std::make_shared<CountedBytes>(std::move(out));
}

std::vector<std::uint32_t> found(const std::vector<std::shared_ptr<CountedBytes>>& all) {
  std::vector<ByteSource> sources;
  sources.reserve(all.size());
  for (const auto& one : all) sources.emplace_back(one);
  const auto first = first_equal(sources);
  REQUIRE(first);
  return *first;
}

TEST_CASE("equal sources are read once, but for their ends") {
  const std::vector all = {bytes(), bytes(), bytes()};
  CHECK(found(all) == std::vector<std::uint32_t>{0, 0, 0});
  for (const auto& one : all) CHECK(one->bytes_read() == kSize + kEnds);
}

TEST_CASE("sources are told apart wherever they differ, and those that differ alike are equal") {
  const std::vector all = {bytes(),     bytes(500'000),   bytes(9000),    bytes(),       bytes(500'000),
                           bytes(9000), bytes(9000, 'p'), bytes(990'000), bytes(500'001)};
  CHECK(found(all) == std::vector<std::uint32_t>{0, 1, 2, 0, 1, 2, 6, 7, 8});
  CHECK(found({bytes(), bytes(9000), bytes(9000)}) == std::vector<std::uint32_t>{0, 1, 1});
  // A source that equals no other is read only up to its difference from the first.
  const std::vector two = {bytes(), bytes(9000)};
  CHECK(found(two) == std::vector<std::uint32_t>{0, 1});
  CHECK(two[1]->bytes_read() < kSize / 2);
}

TEST_CASE("sources of another size, or of other ends, are not read") {
  const auto alone = std::make_shared<CountedBytes>(std::string(kSize - 1, 'x'));
  const std::vector all = {bytes(), alone, bytes(1), bytes(kSize - 1)};
  CHECK(found(all) == std::vector<std::uint32_t>{0, 1, 2, 3});
  CHECK(alone->bytes_read() == 0);
  for (const std::size_t i : {0U, 2U, 3U}) CHECK(all[i]->bytes_read() == kEnds);
}

TEST_CASE("sources at one place are read as one, and not at all where no other has their size") {
  const auto shared = bytes();
  const auto equal = bytes();
  CHECK(found({shared, shared, equal, shared}) == std::vector<std::uint32_t>{0, 0, 0, 0});
  CHECK(shared->bytes_read() == kSize + kEnds);
  const auto alone = bytes();
  CHECK(found({alone, alone, alone}) == std::vector<std::uint32_t>{0, 0, 0});
  CHECK(alone->bytes_read() == 0);
}

TEST_CASE("sources that overlap are compared if they have each byte at most 4 times on average") {
  constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
  const auto whole = std::make_shared<CountedBytes>(std::string(4 * kMiB, 'x'));
  std::vector<ByteSource> parts;
  const auto add = [&](std::uint64_t at) { parts.push_back(ByteSource(whole).slice(at, 3 * kMiB).value()); };
  for (const std::uint64_t at :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{3}, kMiB})
    add(at);
  // One at the place of another is not read.
  for (int i = 0; i < 10; ++i) parts.push_back(parts[2]);
  parts.push_back(ByteSource(whole).slice(2 * kMiB, kMiB).value());
  const auto first = first_equal(parts);
  REQUIRE(first);
  std::vector<std::uint32_t> expected(15);
  expected.push_back(15);
  CHECK(*first == expected);
  add(4);
  CHECK(error_of(first_equal(parts)) ==
        containing("expected payloads that share 4194304 bytes at most 4 times on average, found more"));
  // Two of a size are counted, too.
  parts.clear();
  for (std::uint64_t size = 3 * kMiB; parts.size() < 10; ++size) {
    for (const std::uint64_t at : {0U, 1U}) parts.push_back(ByteSource(whole).slice(at, size).value());
  }
  CHECK(error_of(first_equal(parts)) ==
        containing("expected payloads that share 3145733 bytes at most 4 times on average, found more"));
  parts.resize(4);
  CHECK(first_equal(parts).value() == std::vector<std::uint32_t>{0, 0, 2, 2});
}

TEST_CASE("sources that are made from the same bytes are read at most 4 times on average, too") {
  const auto whole = std::make_shared<CountedBytes>(std::string(kSize, 'x'));
  std::vector<ByteSource> joined;
  for (char c = 'a'; c < 'f'; ++c) {
    joined.push_back(ByteSource::concatenation({source_of(std::string(1, c)), ByteSource(whole)}).value());
  }
  CHECK(first_equal(joined).value() == std::vector<std::uint32_t>{0, 1, 2, 3, 4});
  joined.push_back(ByteSource::concatenation({source_of("f"), ByteSource(whole)}).value());
  CHECK(error_of(first_equal(joined)) ==
        exactly("kTooLarge: counted: expected payloads that share 1000000 bytes at most 4 times on average, "
                "found more"));
}

TEST_CASE("an error of any read ends a search for equal sources") {
  for (const std::size_t which : {0U, 1U, 2U}) {
    Result<std::vector<std::uint32_t>> first = Error{ErrorCode::kIo, ""};
    for (int nth = 0; !first; ++nth) {
      std::vector all = {bytes(), bytes(500'000), bytes(500'000)};
      all[which] = std::make_shared<CountedBytes>(text_of(ByteSource(all[which])), nth);
      first = first_equal({ByteSource(all[0]), ByteSource(all[1]), ByteSource(all[2])});
      if (!first) CHECK(error_of(first) == exactly("kIo: the disk is on fire"));
      if (first) CHECK(all[which]->reads() == nth);
    }
  }
}

TEST_CASE("pages are dropped as sources are compared") {
  const auto one = std::make_shared<RecordingStorage>(kSize);
  const auto other = std::make_shared<RecordingStorage>(kSize);
  CHECK(same_bytes(ByteSource(one), ByteSource(other)).value());
  CHECK(one->forgotten() == one->read());
  CHECK(other->forgotten() == other->read());
  CHECK(same_bytes(repeated(' ', kSize), failing(kSize, 1000)).error().message == "the disk is on fire");
  CHECK(same_bytes(failing(kSize, 1000), repeated(' ', kSize)).error().message == "the disk is on fire");
}

TEST_CASE("two places are compared once, and one place with itself never") {
  const auto one = bytes();
  const auto other = bytes(900'000);
  Comparisons comparisons;
  for (int i = 0; i < 10; ++i) {
    CHECK(comparisons.first_difference(ByteSource(one), ByteSource(other)).value() == 900'000);
  }
  CHECK(other->bytes_read() <= kSize);
  const std::uint64_t read = one->bytes_read();
  CHECK_FALSE(first_difference(ByteSource(one), ByteSource(one)).value().has_value());
  CHECK(one->bytes_read() == read);
}

TEST_CASE("places that overlap are compared once where they do, in any order") {
  constexpr std::uint64_t kDifferent = 900'000;
  constexpr std::uint64_t kStep = 1000;
  for (const bool is_backward : {false, true}) {
    CAPTURE(is_backward);
    const auto one = bytes();
    const auto other = bytes(kDifferent);
    Comparisons comparisons;
    for (std::uint64_t i = 0; i < 100; ++i) {
      const std::uint64_t begin = kStep * (is_backward ? 99 - i : i);
      const auto part = [&](const std::shared_ptr<CountedBytes>& all) {
        return ByteSource(all).slice(begin, kSize - begin - 10).value();
      };
      CHECK(comparisons.first_difference(part(one), part(other)).value() == kDifferent - begin);
      CHECK_FALSE(comparisons.first_difference(part(one), part(one)).value());
    }
    CHECK(comparisons.compared() == kDifferent);
    CHECK(other->bytes_read() <= kSize);
    // The same bytes at another distance are others.
    const auto before = ByteSource(one).slice(kDifferent - 1, kStep).value();
    CHECK(comparisons.first_difference(before, ByteSource(other).slice(kDifferent, kStep).value()).value() ==
          0);
  }
}

TEST_CASE("empty sources are equal") {
  const std::vector all = {std::make_shared<CountedBytes>(""), bytes(), std::make_shared<CountedBytes>("")};
  CHECK(found(all) == std::vector<std::uint32_t>{0, 1, 0});
}

}  // namespace
}  // namespace etstream::same_bytes_test
