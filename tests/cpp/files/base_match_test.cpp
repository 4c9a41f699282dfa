// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/diff.h"

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <vector>

#include "core/base/hashes.h"
#include "core/base/text.h"
#include "file_bytes.h"
#include "files/origins/made_program.h"
#include "formats/pte/backends/made_xnnpack_payload.h"
#include "seeded_random.h"
#include "test_errors.h"
#include "test_paths.h"
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

/// Returns "OFFSET+SIZE@BASE_OFFSET " for each range.
std::string ranges_of(const Base& base) {
  std::string out;
  for (const BaseRange& each : base.ranges)
    out += text("{}+{}@{} ", each.offset, each.size, each.base_offset);
  return out;
}

TEST_CASE("a range begins where bytes begin to be the same, at a multiple of 4, or where the file begins") {
  const std::string base = patterned(10'000);
  const std::string file = base.substr(5'001, 3'000) + std::string(50, 'y') + base.substr(103, 3'000);
  CHECK(ranges_of(matched(file, base)) == "0+3052@5001 3052+2998@105 ");
  CHECK(ranges_of(matched(base.substr(512, 32), base)) == "0+32@512 ");
  CHECK(ranges_of(matched(std::string(32, 'x'), base)) == "");
  const ByteSource after_hole =
      ByteSource::concatenation({ByteSource::zeros(50'000), source_of(file)}).value();
  const auto found = match_base(after_hole, source_of(base));
  REQUIRE_MESSAGE(found, found.error().message);
  CHECK(place_of(*found, 50'000 + 3'051) == 8'052);
  CHECK(place_of(*found, 50'000 + 3'052) == 105);
}

TEST_CASE("each block of a base is found, unless all of its bytes are one") {
  const std::string base = patterned(2048 * 256);
  std::string file;
  std::string expected;
  for (std::size_t i = 2048; i-- > 0;) {
    const std::size_t next = (i + 1) * 256 % base.size();
    expected += text("{}+{}@{} ", file.size(), next == 0 ? 256 : 260, i * 256);
    file += base.substr(i * 256, 256) + std::string(4, static_cast<char>(~base[next]));
  }
  CHECK((ranges_of(matched(file, base)) == expected));
  const auto is_found = [](const std::string& block) {
    return !matched(std::string(100, 'y') + block, block).ranges.empty();
  };
  std::string zeros(1024, '\0');
  zeros[256 + 32] = 'x';
  CHECK_FALSE(is_found(zeros));
  zeros[256 + 31] = 'x';
  CHECK(is_found(zeros));
  std::string pairs(1024, 'a');
  for (std::size_t i = 0; i < pairs.size(); i += 2) pairs[i] = 'b';
  CHECK(is_found(pairs));
  CHECK(match_base(source_of(file), ByteSource::zeros(33 << 20))->ranges.empty());
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
  // So has one of elements of a byte. Data that is no tensor has none if its size is another.
  const std::string bytes = random_bytes(500, 4);
  const std::string few = made::file({.constants = {{random_bytes(100, 5), {100}, "w", ScalarType::kUInt8}},
                                      .named_data = {{"key", random_bytes(300, 6)}}});
  const std::string more = made::file({.constants = {{bytes, {500}, "w", ScalarType::kUInt8}},
                                       .named_data = {{"key", random_bytes(301, 7)}, {"new", "12345"}}});
  const Base of_bytes = matched(more, few);
  CHECK(place_of(of_bytes, more.find(bytes)) == few.find(random_bytes(100, 5)));
  CHECK(!place_of(of_bytes, more.find(random_bytes(301, 7))));
}

TEST_CASE("named data is found by its place among what a delegate asks for, or by its order") {
  // All data has one size, and no bytes of one file are in the other.
  const auto program = [](const std::string& prefix, const std::vector<std::uint64_t>& order,
                          std::uint64_t seed) {
    using namespace made_xnnpack;  // NOLINT: the parts of a graph
    made::Program out;
    for (const std::uint32_t first : {0U, 2U}) {
      auto graph = empty_graph();
      for (const std::uint32_t i : {first, first + 1}) {
        add_value(graph, tensor_of(i, xnnpack_graph::XNNDatatype_xnn_datatype_fp32, {2},
                                   add_constant(graph, prefix + std::to_string(i), 8)));
      }
      out.delegates.emplace_back("XnnpackBackend", payload_of(graph));
    }
    for (const std::uint64_t i : order)
      out.named_data.emplace_back(prefix + std::to_string(i), random_bytes(8, seed + i));
    return made::file(out);
  };
  const std::string base = program("base", {5, 3, 2, 1, 0, 4}, 10);
  const std::string file = program("file", {4, 0, 1, 2, 3, 5}, 20);
  const Base found = matched(file, base);
  const auto place = [&](const std::string& in, std::uint64_t seed) {
    return in.find(random_bytes(8, seed));
  };
  for (const auto& [key, other] : {std::pair(0U, 0U), std::pair(1U, 1U), std::pair(2U, 2U), std::pair(3U, 3U),
                                   std::pair(4U, 5U), std::pair(5U, 4U)}) {
    CHECK(place_of(found, place(file, 20 + key)) == place(base, 10 + other));
  }
}

TEST_CASE("what one of two programs asks for more has no place in the other") {
  const auto program = [](const std::vector<int>& keys_of_each, std::uint64_t seed) {
    using namespace made_xnnpack;  // NOLINT: the parts of a graph
    made::Program out;
    for (const int keys : keys_of_each) {
      auto graph = empty_graph();
      for (int i = 0; i < keys; ++i) {
        const std::string key = std::to_string(seed + out.named_data.size());
        out.named_data.emplace_back(key, random_bytes(8, seed + out.named_data.size()));
        add_value(graph,
                  tensor_of(static_cast<std::uint32_t>(i), xnnpack_graph::XNNDatatype_xnn_datatype_fp32, {2},
                            add_constant(graph, key, 8)));
      }
      out.delegates.emplace_back("XnnpackBackend", payload_of(graph));
    }
    return made::file(out);
  };
  const std::string less = program({1, 1}, 10);
  const auto check = [&](const std::string& more, std::uint64_t own) {
    CHECK(place_of(matched(more, less), more.find(random_bytes(8, 20))) == less.find(random_bytes(8, 10)));
    CHECK(!place_of(matched(more, less), more.find(random_bytes(8, own))));
    CHECK(place_of(matched(less, more), less.find(random_bytes(8, 10))) == more.find(random_bytes(8, 20)));
  };
  check(program({2, 1}, 20), 21);
  check(program({1, 1, 1}, 20), 22);
}

TEST_CASE("errors of reading are passed on") {
  CHECK(error_of(match_base(source_of(patterned(1000)), failing(1000, 500))) ==
        exactly("kIo: the disk is on fire"));
  CHECK(error_of(match_base(failing(1000, 500), source_of(patterned(1000)))) ==
        exactly("kIo: the disk is on fire"));
}

}  // namespace
}  // namespace etstream::base_match_test
