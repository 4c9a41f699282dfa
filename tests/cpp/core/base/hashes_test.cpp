// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/hashes.h"

#include <doctest/doctest.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/layout/range_hasher.h"
#include "test_sources.h"

namespace etstream::hashes_test {
namespace {

ContentHash hash_of(std::string_view bytes) {
  ContentHasher hasher;
  hasher.update(std::as_bytes(std::span(bytes)));
  return hasher.hash();
}

std::string hex(const ContentHash& hash) {
  std::string out;
  for (const std::byte byte : hash) {
    out += "0123456789abcdef"[std::to_integer<int>(byte) >> 4];
    out += "0123456789abcdef"[std::to_integer<int>(byte) & 15];
  }
  return out;
}

TEST_CASE("the hash is what xxhsum -H2 prints") {
  CHECK(hex(hash_of("")) == "99aa06d3014798d86001c324468d497f");
  CHECK(hex(hash_of("etstream\n")) == "fb8e042c1a8fe9071d7b52fc45a5d1c0");
}

TEST_CASE("bytes that come in pieces have the hash of all") {
  const std::string all = patterned(5000);
  ContentHasher hasher;
  for (std::size_t at = 0; at < all.size(); at += 7) {
    hasher.update(std::as_bytes(std::span(all).subspan(at, std::min<std::size_t>(7, all.size() - at))));
  }
  CHECK(hasher.hash() == hash_of(all));
}

TEST_CASE("ranges are hashed as they pass, also those in one another, empty ones and the last") {
  const std::string all = patterned(3000);
  const std::vector<Trailer::Range> ranges = {{0, 10},  {0, 3000}, {0, 0},      {5, 500},  {100, 0},
                                              {400, 1}, {401, 99}, {500, 2500}, {2999, 1}, {3000, 0}};
  for (const std::size_t piece : {std::size_t{1}, std::size_t{13}, std::size_t{100}, std::size_t{4096}}) {
    CAPTURE(piece);
    RangeHasher hasher(ranges);
    for (std::size_t at = 0; at < all.size(); at += piece) {
      CHECK(hasher.position() == at);
      hasher.pass(std::as_bytes(std::span(all).subspan(at, std::min(piece, all.size() - at))));
    }
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      CAPTURE(i);
      CHECK(hasher.hashes()[i] == hash_of(all.substr(ranges[i].offset, ranges[i].size)));
    }
  }
}

#if defined(__GLIBC__)  // which tells what is allocated
TEST_CASE("of many ranges, only those that pass have a hasher") {
  std::vector<Trailer::Range> ranges;
  for (std::uint64_t i = 0; i < 10'000; ++i) ranges.push_back({i, 1});
  RangeHasher hasher(ranges);
  const std::size_t before = ::mallinfo2().uordblks;
  for (std::size_t i = 0; i < ranges.size(); ++i) hasher.pass(std::as_bytes(std::span("x", 1)));
  CHECK(hasher.hashes().back() == hash_of("x"));
  CHECK(::mallinfo2().uordblks < before + 100'000);  // 6 MB if all had
}
#endif

TEST_CASE("SHA-256 is that of FIPS 180-4, however the bytes come") {
  const auto hash = [](const std::string& words, std::size_t piece) {
    Sha256 hasher;
    for (std::size_t at = 0; at < words.size(); at += piece) {
      hasher.update(std::as_bytes(std::span(words).subspan(at, std::min(piece, words.size() - at))));
    }
    return hasher.hex();
  };
  CHECK(hash("", 1) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  const std::string two_blocks = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
  for (const std::size_t piece : std::vector<std::size_t>{1, 7, 56, 100}) {
    CHECK(hash("abc", piece) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    CHECK(hash(two_blocks, piece) == "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  }
}

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

}  // namespace etstream::hashes_test
