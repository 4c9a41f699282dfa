// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/crc32.h"

#include <doctest/doctest.h>

#include <span>
#include <string>
#include <string_view>

#include "test_sources.h"

namespace etstream::crc32_test {
namespace {

std::uint32_t crc32_of_text(std::string_view text, std::uint32_t before = 0) {
  return crc32_of(std::as_bytes(std::span(text)), before);
}

TEST_CASE("checksums are those of the standard, however the bytes come") {
  CHECK(crc32_of_text("") == 0);
  CHECK(crc32_of_text("123456789") == 0xcbf43926);
  CHECK(crc32_of_text("6789", crc32_of_text("12345")) == 0xcbf43926);
  CHECK(crc32_of({}, 7) == 7);
}

TEST_CASE("joined checksums are those of the bytes together") {
  const std::string text = patterned(300);
  for (const std::size_t middle : {0U, 1U, 8U, 100U, 299U, 300U}) {
    const std::uint32_t first = crc32_of_text(std::string_view(text).substr(0, middle));
    const std::uint32_t second = crc32_of_text(std::string_view(text).substr(middle));
    CHECK(joined_crc32(first, second, text.size() - middle) == crc32_of_text(text));
  }
  // The checksum of zeros, by powers of two far over 2^32, is the same as that of two halves.
  std::uint32_t zeros = crc32_of_text(std::string_view("\0", 1));
  for (std::uint64_t size = 1; size < std::uint64_t{1} << 40; size *= 2) {
    if (size == 32) CHECK(zeros == 0x190a55ad);
    zeros = joined_crc32(zeros, zeros, size);
  }
  CHECK(joined_crc32(0, zeros, std::uint64_t{1} << 40) == zeros);
}

}  // namespace
}  // namespace etstream::crc32_test
