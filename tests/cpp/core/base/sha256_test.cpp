// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/sha256.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace etstream::sha256_test {
namespace {

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

}  // namespace
}  // namespace etstream::sha256_test
