// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/base_match.h"

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <vector>

#include "core/base/content_hash.h"
#include "file_bytes.h"
#include "seeded_random.h"
#include "test_errors.h"
#include "test_tensor_files.h"

namespace etstream::base_match_test {
namespace {

Base matched(const std::string& file, const std::string& base) {
  auto out = match_base(source_of(file), source_of(base));
  REQUIRE_MESSAGE(out, out.error().message);
  // Ranges are in order, apart, and inside both.
  std::uint64_t end = 0;
  for (const BaseRange& each : out->ranges) {
    CHECK(each.offset >= end);
    CHECK(each.size > 0);
    end = each.offset + each.size;
    CHECK(end <= file.size());
    CHECK(each.base_offset + each.size <= base.size());
  }
  return *std::move(out);
}

/// Returns where the byte at `offset` has its place in the base.
std::optional<std::uint64_t> place_of(const Base& base, std::uint64_t offset) {
  for (const BaseRange& each : base.ranges) {
    if (offset >= each.offset && offset < each.offset + each.size) {
      return each.base_offset + (offset - each.offset);
    }
  }
  return std::nullopt;
}

TEST_CASE("bytes are found wherever they lie, and the hash is the base's") {
  const std::string base = patterned(300'000);
  const std::string file =
      std::string(1000, 'x') + base.substr(200'000) + std::string(77, 'y') + base.substr(0, 200'000);
  const Base found = matched(file, base);
  ContentHasher hasher;
  hasher.update(bytes_of(base));
  CHECK((found.hash == hasher.hash()));
  CHECK(place_of(found, 1000 + 3) == 200'003);
  CHECK(place_of(found, 101'077 - 78) == 299'999);
  CHECK(place_of(found, 101'077 + 3) == 3);
  CHECK(place_of(found, file.size() - 1) == 199'999);
}

TEST_CASE("a range goes on where bytes differ") {
  const std::string base = patterned(100'000);
  std::string file = "1234" + base;
  for (std::size_t at = 0; at < 30'000; at += 10) file[at] = 'x';
  for (std::size_t at = 50'000; at < 60'000; at += 10) file[at] = 'x';
  const Base found = matched(file, base);
  for (const std::uint64_t at : {10U, 29'999U, 40'000U, 55'000U, 100'003U}) {
    CAPTURE(at);
    CHECK(place_of(found, at) == at - 4);
  }
}

TEST_CASE("what is not in the base has no place, and nothing has one in an empty base") {
  CHECK(matched(patterned(100'000), std::string(100'000, 'x')).ranges.empty());
  CHECK(matched(std::string(100'000, '\0'), std::string(100'000, '\0')).ranges.empty());
  CHECK(matched(patterned(100'000), "").ranges.empty());
  CHECK(matched("", patterned(100'000)).ranges.empty());
}

std::string random_bytes(std::size_t size, std::uint64_t seed) {
  testing::SeededRandom random(seed);
  std::string out(size, '\0');
  for (char& each : out) each = static_cast<char>(random.bits());
  return out;
}

TEST_CASE("tensors are found by their names, though no byte is the same") {
  const std::string one = R"("one":{"dtype":"F32","shape":[100],"data_offsets":[)";
  const std::string two = R"("two":{"dtype":"F32","shape":[50],"data_offsets":[)";
  const std::string base =
      safetensors_file("{" + one + "0,400]}," + two + "400,600]}}", random_bytes(600, 1));
  const std::string file =
      safetensors_file("{" + two + "0,200]}," + one + "200,600]}}", random_bytes(600, 2));
  const Base found = matched(file, base);
  const std::uint64_t data = file.size() - 600;
  CHECK(place_of(found, data) == base.size() - 200);
  CHECK(place_of(found, data + 200) == base.size() - 600);
  // A tensor that has grown has a place for its first bytes; one of another type has none.
  const std::string grown = safetensors_file(
      R"({"one":{"dtype":"F16","shape":[200],"data_offsets":[0,400]},"two":{"dtype":"F32","shape":[51],)"
      R"("data_offsets":[400,604]}})",
      random_bytes(604, 3));
  const Base some = matched(grown, base);
  CHECK(place_of(some, grown.size() - 204) == base.size() - 200);
  CHECK(!place_of(some, grown.size() - 1));
}

TEST_CASE("errors of reading are passed on") {
  CHECK(error_of(match_base(source_of(patterned(1000)), failing(1000, 500))) ==
        exactly("kIo: the disk is on fire"));
  CHECK(error_of(match_base(failing(1000, 500), source_of(patterned(1000)))) ==
        exactly("kIo: the disk is on fire"));
}

}  // namespace
}  // namespace etstream::base_match_test
