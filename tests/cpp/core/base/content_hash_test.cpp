// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/content_hash.h"

#include <doctest/doctest.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include <algorithm>
#include <string>

#include "core/layout/range_hasher.h"
#include "test_sources.h"

namespace etstream::content_hash_test {
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

}  // namespace
}  // namespace etstream::content_hash_test
