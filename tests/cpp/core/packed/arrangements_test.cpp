// SPDX-License-Identifier: BSD-3-Clause
#include "core/packed/arrangements.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "file_bytes.h"
#include "seeded_random.h"
#include "test_sources.h"

namespace etstream::arrangements_test {
namespace {

using packed::Arrangement;

/// Arranges bytes as schema/packed_file.md has it, one after the other.
std::string arranged(const Arrangement& arrangement, const std::string& piece) {
  const std::size_t size = arrangement.element_size;
  const std::string before = piece.substr(0, arrangement.first_element);
  const std::size_t elements = (piece.size() - before.size()) / size;
  std::string out;
  for (std::size_t byte = size; byte-- > 0;) {
    for (std::size_t i = 0; i < elements; ++i) {
      std::uint64_t element = 0;
      for (std::size_t b = size; b-- > 0;) {
        element = element << 8 | static_cast<unsigned char>(piece[before.size() + i * size + b]);
      }
      const std::uint64_t rotated =
          element << arrangement.rotation | element >> (8 * size - arrangement.rotation);
      out += static_cast<char>(rotated >> (8 * byte));
    }
  }
  return out + before + piece.substr(before.size() + elements * size);
}

std::string split(const Arrangement& arrangement, const std::string& piece) {
  std::vector<std::byte> out = bytes_of(piece + "behind");
  packed::split(arrangement, bytes_of(piece), std::span(out).first(piece.size()));
  CHECK(text_of(std::span(out).subspan(piece.size())) == "behind");
  return text_of(std::span(out).first(piece.size()));
}

std::string merge(const Arrangement& arrangement, const std::string& planes) {
  std::vector<std::byte> out = bytes_of(planes + "behind");
  packed::merge(arrangement, bytes_of(planes), std::span(out).first(planes.size()));
  CHECK(text_of(std::span(out).subspan(planes.size())) == "behind");
  return text_of(std::span(out).first(planes.size()));
}

TEST_CASE("a piece of any size is split in planes as specified, and merged again") {
  std::vector<std::size_t> sizes{1000, 4095, 65536, 65537};
  for (std::size_t size = 0; size < 40; ++size) sizes.push_back(size);
  for (const std::uint32_t element : {2U, 4U}) {
    for (const std::uint32_t rotation : {0U, 1U}) {
      for (std::uint32_t first = 0; first < element; ++first) {
        for (const std::size_t size : sizes) {
          const Arrangement arrangement{element, rotation, first};
          const std::string piece = patterned(size);
          CAPTURE(element);
          CAPTURE(rotation);
          CAPTURE(first);
          CAPTURE(size);
          const std::string planes = split(arrangement, piece);
          CHECK(planes == arranged(arrangement, piece));
          CHECK(merge(arrangement, planes) == piece);
        }
      }
    }
  }
}

TEST_CASE("the highest bytes come first, and those around the elements last") {
  CHECK(split({2, 0, 1}, "xaAbBcCy") == "ABCabcxy");
  CHECK(split({4, 0, 2}, "xyabcdABCDz") == "dDcCbBaAxyz");
  CHECK(split({2, 1, 0}, {"\x01\x80", 2}) == std::string("\x00\x03", 2));
}

using packed::kNew;
using packed::kSame;
using packed::Run;

std::string subtracted(std::uint32_t element_size, const std::string& now, const std::string& base) {
  std::vector<std::byte> out = bytes_of(now + "behind");
  packed::subtract(element_size, bytes_of(now), bytes_of(base), out.data());
  CHECK(text_of(std::span(out).subspan(now.size())) == "behind");
  return text_of(std::span(out).first(now.size()));
}

std::string added(std::uint32_t element_size, const std::string& differences, const std::string& base) {
  std::vector<std::byte> out = bytes_of(base + "behind");
  packed::add(element_size, bytes_of(differences), std::span(out).first(base.size()));
  CHECK(text_of(std::span(out).subspan(base.size())) == "behind");
  return text_of(std::span(out).first(base.size()));
}

template <class T>
std::string bytes_for(T value) {
  return text_of(std::as_bytes(std::span(&value, 1)));
}

TEST_CASE("what is added to the base is what was subtracted from it, at any size") {
  testing::SeededRandom random(1);
  for (const std::uint32_t size : {1U, 2U, 4U}) {
    for (std::size_t bytes = 0; bytes < 70; ++bytes) {
      std::string now(bytes, '\0');
      std::string base(bytes, '\0');
      for (char& each : now) each = static_cast<char>(random.bits());
      for (char& each : base) each = static_cast<char>(random.bits());
      CAPTURE(size);
      CAPTURE(bytes);
      const std::string differences = subtracted(size, now, base);
      CHECK((added(size, differences, base) == now));
      CHECK((subtracted(size, now, now) == std::string(bytes, '\0')));
    }
  }
}

TEST_CASE("a difference is the number of floats between two, with its sign in the lowest bit") {
  const auto difference = [](float now, float base) {
    return get_at<std::uint32_t>(subtracted(4, bytes_for(now), bytes_for(base)), 0);
  };
  const float one = 1.0F;
  CHECK(difference(std::nextafter(one, 2.0F), one) == 2);
  CHECK(difference(std::nextafter(one, 0.0F), one) == 1);
  CHECK(difference(std::nextafter(-one, 0.0F), -one) == 2);
  CHECK(difference(0.0F, -0.0F) == 2);
  CHECK(difference(std::numeric_limits<float>::denorm_min(), 0.0F) == 2);
  // The example in schema/packed_file.md.
  const auto minus_one = static_cast<std::uint16_t>(0xBF80);
  CHECK((added(2, bytes_for(std::uint16_t{3}), bytes_for(minus_one)) ==
         bytes_for(static_cast<std::uint16_t>(0xBF82))));
  // Bytes are no floats.
  CHECK((subtracted(1, "\x01\x80\xFF", "\x02\x7F\x01") == "\x01\x02\x03"));
}

/// Returns the runs that find_same() makes of one that has a place in the base.
std::vector<Run> divided(const std::string& piece, const std::string& base, const std::vector<Run>& runs) {
  std::vector<Run> out(packed::kMostRuns);
  out.resize(packed::find_same(bytes_of(piece), bytes_of(base), runs, out));
  return out;
}

TEST_CASE("runs are divided where at least four blocks are the same") {
  std::string base = patterned(10000);
  const auto runs_of = [&](const std::string& piece) { return divided(piece, base, {{10000, 1, 70}}); };
  CHECK((runs_of(base) == std::vector<Run>{{10000, kSame, 70}}));
  std::string piece = base;
  piece[0] = static_cast<char>(piece[0] ^ 1);
  CHECK((runs_of(piece) == std::vector<Run>{{256, 1, 70}, {9744, kSame, 326}}));
  piece[256 + 1024] = static_cast<char>(piece[256 + 1024] ^ 1);
  CHECK((runs_of(piece) ==
         std::vector<Run>{{256, 1, 70}, {1024, kSame, 326}, {256, 1, 1350}, {8464, kSame, 1606}}));
  piece[256 + 1023] = static_cast<char>(piece[256 + 1023] ^ 1);
  CHECK((runs_of(piece) == std::vector<Run>{{1536, 1, 70}, {8464, kSame, 1606}}));
  piece[9999] = static_cast<char>(piece[9999] ^ 1);
  CHECK((runs_of(piece) == std::vector<Run>{{1536, 1, 70}, {8448, kSame, 1606}, {16, 1, 10054}}));
  // A short run is the same or is not.
  CHECK((divided("abc", "abc", {{3, 1, 7}}) == std::vector<Run>{{3, kSame, 7}}));
  CHECK((divided("abcde", "abcxx", {{3, kNew, 0}, {2, kNew, 0}}) == std::vector<Run>{{5, kNew, 0}}));
  CHECK((divided("abcde", "abcde", {{3, 1, 7}, {2, 1, 10}}) == std::vector<Run>{{5, kSame, 7}}));
  CHECK((divided("abcde", "abcde", {{3, 1, 7}, {2, 1, 11}}) ==
         std::vector<Run>{{3, kSame, 7}, {2, kSame, 11}}));
}

TEST_CASE("a sparse plane is two masks and the bytes that are not zero") {
  testing::SeededRandom random(2);
  for (std::size_t size = 0; size < 200; ++size) {
    CAPTURE(size);
    // Up to all bytes are zero.
    const std::uint64_t rate = 1 + size % 40;
    std::string plane(size, '\0');
    for (char& each : plane) each = random.one_in(rate) ? static_cast<char>(random.bits()) : '\0';
    std::vector<std::byte> masks(packed::masks_size(size));
    std::vector<std::byte> values(size);
    const packed::SparseSizes sizes = packed::split_sparse(bytes_of(plane), masks, values.data());
    CHECK(sizes.values == size - static_cast<std::size_t>(std::count(plane.begin(), plane.end(), '\0')));
    CHECK(sizes.mask <= std::min(sizes.values, packed::mask_size(size)));
    CHECK(sizes.upper == packed::mask_size(packed::mask_size(size)));
    std::vector<std::byte> coded(masks.begin(),
                                 masks.begin() + static_cast<std::ptrdiff_t>(sizes.upper + sizes.mask));
    coded.insert(coded.end(), values.begin(), values.begin() + static_cast<std::ptrdiff_t>(sizes.values));
    std::vector<std::byte> merged(size);
    std::vector<std::byte> mask(packed::mask_size(size));
    CHECK(coded.size() == sizes.all());
    CHECK(packed::merge_sparse(coded, mask, merged) == sizes.all());
    CHECK((text_of(merged) == plane));
    if (!coded.empty()) {
      CHECK(!packed::merge_sparse(std::span(coded).first(coded.size() - 1), mask, merged));
    }
    coded.resize(coded.size() + 5);
    CHECK(packed::merge_sparse(coded, mask, merged) == sizes.all());
    // A bit beyond the mask.
    if (packed::mask_size(size) % 8 != 0) {
      coded[sizes.upper - 1] |= std::byte{0x80};
      CHECK(!packed::merge_sparse(coded, mask, merged));
    }
  }
}

}  // namespace

}  // namespace etstream::arrangements_test
