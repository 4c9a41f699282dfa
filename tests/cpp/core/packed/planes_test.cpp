// SPDX-License-Identifier: BSD-3-Clause
#include "core/packed/planes.h"

#include <doctest/doctest.h>

#include <bit>
#include <string>
#include <vector>

#include "test_sources.h"

namespace etstream::planes_test {
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

}  // namespace
}  // namespace etstream::planes_test
