// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/packed_file.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "core/io/packed_bytes.h"
#include "test_errors.h"
#include "test_sources.h"

namespace etstream::threaded_packed_file_test {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

TEST_CASE("threads pack a file as one does, and unpack it") {
  const std::string original = patterned(9 * kMiB + 5);
  const std::string packed = packed_bytes(original, 4);
  CHECK((packed == packed_bytes(original, 1)));
  const auto found = read_through(packed, 4);
  REQUIRE_MESSAGE(found, found.error().message);
  CHECK((*found == original));
}

TEST_CASE("threads that unpack a bad file end") {
  std::string packed = packed_bytes(patterned(9 * kMiB));
  packed[packed.size() / 2] = static_cast<char>(~packed[packed.size() / 2]);
  CHECK(!read_through(packed, 4));
}

TEST_CASE("threads decode a large read, which begins and ends inside of pieces") {
  set_default_threads(4);
  // More pieces than the reader takes offsets at once.
  std::string original(66 * kMiB + 1000, '\0');
  for (std::size_t at = 0; at < original.size(); at += kMiB / 4 + 1)
    original[at] = static_cast<char>(at % 251);
  const auto source = unpacked(source_of(packed_bytes(original, 4)));
  REQUIRE(source);
  const std::pair<std::size_t, std::size_t> ranges[] = {
      {0, original.size()}, {kMiB, 4 * kMiB}, {kMiB, 4 * kMiB + 7}, {5, original.size() - 10}};
  for (const auto& range : ranges) {
    const std::size_t offset = range.first;
    const std::size_t size = range.second;
    CAPTURE(offset);
    std::string found(size, '?');
    const auto read = source->read_at(offset, std::as_writable_bytes(std::span(found)));
    REQUIRE_MESSAGE(read, read.error().message);
    CHECK((found == original.substr(offset, size)));
  }
}

TEST_CASE("a large read of a bad file ends with the error of the first bad piece") {
  set_default_threads(4);
  std::string packed = packed_bytes(patterned(9 * kMiB));
  for (const std::size_t at : {packed.size() / 2, packed.size() / 3}) {
    packed[at] = static_cast<char>(~packed[at]);
  }
  const auto source = unpacked(file_of(packed));
  REQUIRE(source);
  const auto error_from = [&](std::size_t offset, std::size_t size) {
    std::vector<std::byte> out(size);
    return error_of(source->read_at(offset, out));
  };
  const doctest::String of_large = error_from(0, source->size());
  CHECK(of_large == error_from(2 * kMiB, 2 * kMiB));
  CHECK(of_large != error_from(4 * kMiB, 2 * kMiB));
}

TEST_CASE("many threads read a packed file at once") {
  constexpr unsigned kThreads = 4;
  constexpr int kReads = 60;
  const std::string original = patterned(7 * kMiB + 1000);
  const auto source = unpacked(source_of(packed_bytes(original)));
  REQUIRE(source);
  std::atomic<int> right = 0;
  const auto read_some = [&](unsigned seed) {
    std::mt19937 random(seed);
    for (int i = 0; i < kReads; ++i) {
      const std::size_t offset = random() % original.size();
      // Every third read is of more than a piece.
      const std::size_t most = i % 3 == 0 ? 3 * kMiB : 100;
      const std::size_t size = random() % (std::min(original.size() - offset, most) + 1);
      std::string found(size, '?');
      const bool read = source->read_at(offset, std::as_writable_bytes(std::span(found))).has_value();
      right += read && found == original.substr(offset, size) ? 1 : 0;
    }
  };
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < kThreads; ++seed) threads.emplace_back(read_some, seed);
  for (std::thread& thread : threads) thread.join();
  CHECK(right == kThreads * kReads);
}

}  // namespace
}  // namespace etstream::threaded_packed_file_test
