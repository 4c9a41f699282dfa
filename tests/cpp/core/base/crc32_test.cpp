// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/crc32.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "test_sources.h"

namespace etstream::crc32_test {
namespace {

std::uint32_t crc32_of(std::string_view text) {
  Crc32 checksum;
  checksum.update(std::as_bytes(std::span(text)));
  return checksum.value();
}

TEST_CASE("checksums are those of the standard") {
  CHECK(crc32_of("") == 0);
  CHECK(crc32_of("123456789") == 0xcbf43926);
  CHECK(crc32_of("The quick brown fox jumps over the lazy dog") == 0x414fa339);
  CHECK(crc32_of(std::string(32, '\0')) == 0x190a55ad);
  CHECK(crc32_of(std::string(32, '\xff')) == 0xff6cab0b);
}

TEST_CASE("checksums are the same however the bytes come") {
  const std::string text = patterned(1000);
  const std::uint32_t whole = crc32_of(text);
  for (const std::size_t piece : {1U, 3U, 15U, 16U, 17U, 64U, 999U}) {
    Crc32 checksum;
    for (std::size_t at = 0; at < text.size(); at += piece) {
      checksum.update(std::as_bytes(std::span(std::string_view(text).substr(at, piece))));
    }
    CHECK(checksum.value() == whole);
  }
}

TEST_CASE("joined checksums are those of the bytes together") {
  const std::string text = patterned(300);
  for (const std::size_t middle : {0U, 1U, 8U, 100U, 299U, 300U}) {
    const std::uint32_t first = crc32_of(std::string_view(text).substr(0, middle));
    const std::uint32_t second = crc32_of(std::string_view(text).substr(middle));
    CHECK(joined_crc32(first, second, text.size() - middle) == crc32_of(text));
  }
  // The checksum of zeros, by powers of two far over 2^32, is the same as that of two halves.
  std::uint32_t zeros = crc32_of(std::string_view("\0", 1));
  for (std::uint64_t size = 1; size < std::uint64_t{1} << 40; size *= 2) {
    if (size == 32) CHECK(zeros == 0x190a55ad);
    zeros = joined_crc32(zeros, zeros, size);
  }
  CHECK(joined_crc32(0, zeros, std::uint64_t{1} << 40) == zeros);
}

}  // namespace
}  // namespace etstream::crc32_test
