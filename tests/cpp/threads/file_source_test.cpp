// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <atomic>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "open_files.h"

namespace etstream::file_source_test {
namespace {

TEST_CASE("many threads read many files at once") {
  constexpr std::size_t kFiles = 100;
  constexpr int kThreads = 8;
  constexpr int kReads = 3000;
  const TemporaryFolder folder;
  const auto sources = open_files(folder, "file-", kFiles);
  std::atomic<int> wrong = 0;
  std::atomic<int> right = 0;
  const auto read_some = [&](unsigned seed) {
    std::mt19937 random(seed);
    for (int i = 0; i < kReads; ++i) {
      const std::size_t which = random() % kFiles;
      const std::string expected = "content of file-" + std::to_string(which);
      const std::size_t offset = random() % expected.size();
      const std::size_t size = random() % (expected.size() - offset + 1);
      std::string found(size, '?');
      const ByteSource copy = sources[which];
      const bool read = copy.read_at(offset, std::as_writable_bytes(std::span(found))).has_value();
      (read && found == expected.substr(offset, size) ? right : wrong) += 1;
    }
  };
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < kThreads; ++seed) threads.emplace_back(read_some, seed);
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(right == kThreads * kReads);
}

}  // namespace
}  // namespace etstream::file_source_test
