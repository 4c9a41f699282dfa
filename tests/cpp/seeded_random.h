// SPDX-License-Identifier: BSD-3-Clause
//
// SeededRandom: the same numbers on every machine from the same seed, so that a failure can be repeated. Also
// how many of them the tests take.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <utility>

namespace etstream::testing {

/// Returns how many rounds a random test takes, each with seeds of its own: ETSTREAM_TEST_ROUNDS, and at
/// least 1.
inline std::uint64_t rounds() {
  static const char* const set = std::getenv("ETSTREAM_TEST_ROUNDS");
  return std::max(std::uint64_t{1}, set == nullptr ? 1 : std::uint64_t{std::strtoull(set, nullptr, 10)});
}

/// Returns whether a test tries number `i` of many changes to a file: a round tries one in 19, so 20 try all.
inline bool is_tried(std::uint64_t i) { return i % 19 < rounds(); }

class SeededRandom {
 public:
  explicit SeededRandom(std::uint64_t seed) : engine_(seed) {}

  /// Returns 64 random bits.
  std::uint64_t bits() { return engine_(); }
  /// Returns a number from 0 to `n` - 1.
  std::uint64_t below(std::uint64_t n) { return engine_() % n; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }

  template <class Container>
  const auto& pick(const Container& from) {
    return *(std::begin(from) + static_cast<std::ptrdiff_t>(below(std::size(from))));
  }
  template <class Container>
  void shuffle(Container& items) {
    for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace etstream::testing
