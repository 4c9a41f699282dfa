// SPDX-License-Identifier: BSD-3-Clause
//
// Estimates for contents whose coded size is known.
#include "etstream/inspect.h"

#include <doctest/doctest.h>

#include <functional>
#include <string>

#include "file_bytes.h"

namespace etstream::coded_size_test {
namespace {

constexpr std::size_t kSample = 64 << 10;

std::string bytes_of(std::size_t size, const std::function<std::size_t(std::size_t)>& byte) {
  std::string out(size, '\0');
  for (std::size_t i = 0; i < size; ++i) out[i] = static_cast<char>(byte(i));
  return out;
}

FileContent content(std::uint64_t offset, std::uint64_t size, std::uint32_t element_size = 1) {
  FileContent out;
  out.offset = offset;
  out.size = size;
  out.element_size = element_size;
  return out;
}

CodedSizes estimate(const std::string& file, const std::vector<FileContent>& contents) {
  const auto found = estimate_coded_sizes(file_of(file), contents);
  REQUIRE_MESSAGE(found, found.error().message);
  return *found;
}

/// Returns the estimated size of a file that is one content.
std::uint64_t coded(const std::string& file, std::uint32_t element_size) {
  const CodedSizes found = estimate(file, {content(0, file.size(), element_size)});
  REQUIRE(found.contents.size() == 1);
  CHECK(found.looked_at == file.size());
  CHECK(found.saved == file.size() - found.contents[0].size);
  CHECK(found.bytes_read == kSample);
  return found.contents[0].size;
}

TEST_CASE("equal bytes take no room, bytes of two values an eighth, and bytes of all values all of it") {
  CHECK(coded(std::string(kSample, 'a'), 1) == 0);
  // The estimate adds the part of a distribution that a sample does not show, here less than a byte.
  CHECK(coded(bytes_of(kSample, [](std::size_t i) { return i % 2; }), 1) == kSample / 8 + 1);
  CHECK(coded(bytes_of(kSample, [](std::size_t i) { return i; }), 1) == kSample);
  // Bytes of eight values, of four, of two and of one, three bits and two and one and none of 32.
  CHECK(coded(bytes_of(kSample, [](std::size_t i) { return i / 4 % (std::size_t{8} >> i % 4); }), 4) ==
        kSample * 6 / 32 + 1);
}

TEST_CASE("each byte of an element is coded by itself, and elements of unknown size as suits them best") {
  const std::string fours = bytes_of(kSample, [](std::size_t i) { return i % 4 == 3 ? i / 4 : 7; });
  CHECK(coded(fours, 4) == kSample / 4);
  CHECK(coded(fours, 0) == kSample / 4);
  CHECK(coded(fours, 17) == kSample / 4);
  CHECK(coded(fours + fours, 4) == kSample / 2);
  CHECK(coded(fours, 1) > kSample / 3);
  const std::string sixteens = bytes_of(kSample, [](std::size_t i) { return i % 16 == 0 ? i / 16 : 7; });
  CHECK(coded(sixteens, 16) == kSample / 16);
  // The fewer bytes a sample has of a place, the more values it is taken not to show.
  const std::string ones = bytes_of(kSample, [](std::size_t i) { return i / 4 % 128; });
  CHECK(coded(ones, 0) == kSample * 7 / 8 + 12);
  CHECK(coded(ones, 1) == kSample * 7 / 8 + 12);
  CHECK(coded(ones, 2) == kSample * 7 / 8 + 23);
  const std::string twos = bytes_of(kSample, [](std::size_t i) { return i % 2 == 0 ? 7 : i / 4 % 128; });
  CHECK(coded(twos, 0) == kSample * 7 / 16 + 12);
  CHECK(coded(twos, 2) == kSample * 7 / 16 + 12);
  CHECK(coded(twos, 4) == kSample * 7 / 16 + 23);
}

TEST_CASE("samples come from the whole content, and from nothing else") {
  const std::size_t size = 4 * kSample;
  const std::string half = bytes_of(size, [&](std::size_t i) { return i < size / 2 ? 0 : i; });
  const auto is_in_the_middle = [&](std::uint64_t coded_size) {
    return coded_size > size / 2 && coded_size < 3 * size / 4;
  };
  CHECK(is_in_the_middle(coded(half, 1)));
  CHECK(is_in_the_middle(coded(std::string(half.rbegin(), half.rend()), 1)));
  CHECK(coded(std::string(size - 4096, 'a') + patterned(4096), 1) > 0);
  const std::string around = bytes_of(kSample, [](std::size_t i) { return i; });
  const CodedSizes found = estimate(around + std::string(size, 'a') + around,
                                    {content(0, size + 2 * kSample), content(kSample, size)});
  REQUIRE(found.contents.size() == 1);
  CHECK(found.contents[0].size == 0);
}

TEST_CASE("contents of children and small ones are not looked at, and others keep their order") {
  const std::string file(8 * kSample, 'a');
  std::vector<FileContent> contents = {content(0, 8 * kSample), content(0, 4 * kSample), content(0, kSample),
                                       content(kSample, 2 * kSample), content(4 * kSample, kSample - 1)};
  contents[2].parent = contents[3].parent = 1;
  const CodedSizes found = estimate(file, contents);
  REQUIRE(found.contents.size() == 2);
  CHECK(found.contents[0].content == 2);
  CHECK(found.contents[1].content == 3);
  CHECK(found.looked_at == 3 * kSample);
  CHECK(found.saved == 3 * kSample);
  CHECK(found.bytes_read == 2 * kSample);
}

}  // namespace
}  // namespace etstream::coded_size_test
